"""OxyGen as a ROS 2 package: one prefill per observation, shared by actions and language.

Imports nothing of its own. The one line below merges a source checkout, which has no
generated ``msg`` and ``srv``, with the built package further along ``sys.path``.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
__version__ = "0.1.0"
