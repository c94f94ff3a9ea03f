"""What both nodes share: parameters, life cycle with autostart, loading beside the executor, heartbeat.

Transitions run on the executor's thread. A failed configure leaves the node unconfigured, alive and ready to
be configured again; a failure while active goes through error processing to the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from rclpy._rclpy_pybind11 import RCLError
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock as RosClock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from std_srvs.srv import Trigger

from oxygen_ros.clock import Clock, SteadyClock
from oxygen_ros.config import OxygenConfig
from oxygen_ros.errors import OxygenError
from oxygen_ros.ros import qos
from oxygen_ros.ros.arguments import RosArguments
from oxygen_ros.ros.clock_watch import ClockWatch
from oxygen_ros.ros.diagnostics import health, life_line
from oxygen_ros.ros.entities import EntityMark, wait_until_acknowledged
from oxygen_ros.ros.errands import Errands
from oxygen_ros.ros.loading import Loading
from oxygen_ros.ros.parameters import NodeParameters
from oxygen_ros.runtime.refusals import Refusals

HEARTBEAT_S = 1.0

_SUCCESS, _FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


class ManagedNode(LifecycleNodeMixin, Node):
    """A lifecycle node. Subclasses say what is made, started, stopped and freed."""

    def __init__(
        self, name: str, *, arguments: RosArguments | None = None, clock: Clock | None = None, **kwargs: Any
    ) -> None:
        """Declare parameters and services; nothing else exists before configure.

        Args:
            name: of the node.
            arguments: what ``start_ros`` returned.
            clock: steady time.
            kwargs: of ``rclpy.node.Node``: namespace, context, parameter_overrides and others.
        """
        Node.__init__(self, name, **kwargs)
        self.transitions = ReentrantCallbackGroup()
        LifecycleNodeMixin.__init__(self, callback_group=self.transitions)
        self.steady = clock or SteadyClock()
        self.parameters = NodeParameters(self, arguments)
        self.refusals = Refusals(self.steady, self.get_logger().warning)
        self.on_end: Callable[[], None] = lambda: None
        self._errands = Errands(self, self.transitions)
        self._loading: Loading | None = None
        self._loaded: tuple[OxygenConfig, Any] | None = None
        self._has_load_failed = False
        self._failure = ""
        self._plain_change_state = self._service_change_state.callback
        self._service_change_state.callback = cast(Any, self._on_change_state)
        self.create_service(Trigger, "~/shutdown", self._on_shutdown_service)
        self._diagnostics = self.create_publisher(DiagnosticArray, self.parameters.health, qos.stream(10))
        steady = RosClock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(HEARTBEAT_S, self._on_heartbeat, callback_group=self.transitions, clock=steady)
        self._autostart = self.create_timer(
            0.0, self._on_autostart, callback_group=self.transitions, clock=steady
        )
        self._clock_watch = ClockWatch(self, self.steady, self.on_clock_jump)
        self._mark = EntityMark(self)

    def prepare(self, config: OxygenConfig) -> Any:
        """Load what takes long. Runs in a thread of its own; touches nothing of the node.

        Raises:
            OxygenError: if it cannot be done; configure fails with its message.
        """

    async def look_around(self, config: OxygenConfig) -> OxygenError | None:
        """Compare the configuration with what is there, while ``prepare`` runs; why it does not fit."""
        return None

    def set_up(self, config: OxygenConfig, prepared: Any) -> None:
        """Make publishers, subscriptions and services."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin to act."""
        raise NotImplementedError

    def stop(self, reason: str) -> None:
        """Hold, end everything that runs. Called with publishers still active; may be called twice."""
        raise NotImplementedError

    def tear_down(self) -> None:
        """Let go of what ``set_up`` made; publishers, subscriptions and services are destroyed afterwards.

        May be called when nothing was made.
        """
        raise NotImplementedError

    def on_clock_jump(self, description: str) -> None:
        """ROS time has jumped: forget what is tied to the old time."""

    def diagnose(self) -> list[DiagnosticStatus]:
        """Lines of health beside the life cycle's own."""
        return []

    @property
    def state(self) -> str:
        """Name of the present state, e.g. "active"."""
        return str(self._state_machine.current_state[1])

    @property
    def is_active(self) -> bool:
        """True while the node acts."""
        return int(self._state_machine.current_state[0]) == State.PRIMARY_STATE_ACTIVE

    def now_ns(self) -> int:
        """ROS time; 0 while it is simulated and no /clock has come."""
        return int(self.get_clock().now().nanoseconds)

    def in_executor(self, work: Callable[[], object]) -> None:
        """Have ``work`` done on the executor's thread. Any thread; nothing happens once it does not spin."""
        self._errands.add(work)

    async def bring_up(self) -> None:
        """Load, configure and activate."""
        await self._load()
        if self.state == "unconfigured" and self.trigger_configure() == _SUCCESS:
            self.trigger_activate()

    def fail(self, reason: str) -> None:
        """Leave the active state through error processing. Executor thread."""
        self.get_logger().error(f"{reason}; the robot holds. Configure and activate to go on.")
        if self.is_active:
            self._failure = reason
            self.stop(reason)
            self.trigger_deactivate()
        self.publish_diagnostics()

    def shut_down(self) -> None:
        """Hold, end everything and reach the finalized state; the last messages are on their way then.

        For the end of the process: the executor does not spin any more.
        """
        if self._loading is not None:
            self._loading.cancel()
        if self.is_active:
            self.stop("shutdown")
        # The transition frees publishers, and with them what nobody has acknowledged: the ends of texts.
        wait_until_acknowledged(self, self.steady)
        try:
            self.trigger_shutdown()
        except RCLError as error:
            self.get_logger().debug(f"no shutdown transition from {self.state}: {error}")
        self.publish_diagnostics()
        wait_until_acknowledged(self, self.steady)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make everything that the parameters ask for; FAILURE with a logged message if that cannot be."""
        loaded, has_failed = self._loaded, self._has_load_failed
        self._loaded, self._has_load_failed = None, False
        if has_failed:
            return _FAILURE
        self._failure = ""
        self._mark = EntityMark(self)
        try:
            if loaded is None:
                config = self.parameters.load().config
                loaded = (config, self.prepare(config))
            self.set_up(*loaded)
        except OxygenError as error:
            self._note_failure(str(error))
            self._free()
            return _FAILURE
        except Exception as error:  # told here, since rclpy keeps it to itself
            self._note_failure(f"{type(error).__name__}: {error}")
            raise
        self.parameters.lock("fixed while the node is configured; clean up first")
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Begin to act."""
        result = super().on_activate(state)
        if result == _SUCCESS:
            self.start()
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold and end what runs; ERROR if that is because of a failure."""
        self.stop("deactivated")
        result = super().on_deactivate(state)
        return TransitionCallbackReturn.ERROR if self._failure else result

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything; parameters can be changed again."""
        self._free()
        return _SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, end and free everything."""
        if state.label == "active":
            self.stop("shutdown")
        self._free()
        return _SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Hold, end and free everything: the node is unconfigured then and can be configured again."""
        if not self._failure:
            self._note_failure(f"error in state {state.label}")
        if state.label == "active":
            self.stop(self._failure)
        self._free()
        return _SUCCESS

    def _free(self) -> None:
        self.tear_down()
        self._mark.destroy_newer()
        self.parameters.unlock()

    def _note_failure(self, text: str) -> None:
        self._failure = text
        self.get_logger().error(text)

    async def _load(self) -> None:
        """Do what takes long beside the executor. What comes of it waits for ``on_configure``."""
        self._loaded, self._failure, self._has_load_failed = None, "", True
        try:
            config = self.parameters.load().config
        except OxygenError as error:
            self._note_failure(str(error))
            return
        work, wake = partial(self.prepare, config), partial(self.in_executor, lambda: None)
        loading = self._loading = Loading(work, wake)
        self.parameters.lock("fixed while the model loads")
        try:
            refusal: Exception | None = await self.look_around(config)
        except Exception as error:  # a name that ROS does not allow, for one
            refusal = error
        await loading
        self._loading = None
        self.parameters.unlock()
        if loading.is_cancelled:
            self._note_failure("configure was cancelled")
        elif refusal or isinstance(loading.error, OxygenError):
            self._note_failure(str(refusal or loading.error))
        elif loading.error is not None:
            self._note_failure(f"{type(loading.error).__name__}: {loading.error}")
        else:
            self._loaded, self._has_load_failed = (config, loading.result), False

    async def _on_autostart(self) -> None:
        self._autostart.cancel()
        if self.parameters.autostart and self.state == "unconfigured":
            await self.bring_up()

    async def _on_change_state(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        """Load beside the executor before configure; any other request in the meantime cancels that."""
        wanted = request.transition
        is_configure = wanted.id == Transition.TRANSITION_CONFIGURE or wanted.label == "configure"
        if self._loading is not None:
            self._loading.cancel()
            response.success = not is_configure
            return response
        if is_configure and self.state == "unconfigured":
            await self._load()
        try:
            return self._plain_change_state(request, response)
        except RCLError as error:
            self.get_logger().warning(f"no transition {request.transition.id} from {self.state}: {error}")
            response.success = False
            return response

    def _on_shutdown_service(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = True, "shutting down"
        self.on_end()
        return response

    def _on_heartbeat(self) -> None:
        self._clock_watch.check()
        self.publish_diagnostics()

    def publish_diagnostics(self) -> None:
        """Send health now: once a second by itself, at once when something breaks."""
        name = self.get_fully_qualified_name().strip("/")
        failure = "" if self._loading is not None else self._failure
        state = "loading" if self._loading is not None else self.state
        lines = [life_line(name, state, failure, self._clock_watch.is_known), *self.diagnose()]
        self._diagnostics.publish(health(lines, self.now_ns()))
