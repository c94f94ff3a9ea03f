"""Our message definitions for bags, without comments: msg/*.msg holds the full text, a test compares."""

DEFINITIONS = {
    "oxygen_ros/msg/ActionChunk": """std_msgs/Header header
uint64 observation_id
uint64 cycle_id
uint64 chunk_id
string expert
string instruction
string[] joint_names
float64 dt_s
uint32 horizon
uint32 action_dim
uint32 execute_horizon
float32[] actions
uint64 actions_played
float32 latency_ms
""",
    "oxygen_ros/msg/CycleReport": """uint8 STATUS_ACTED=0
uint8 STATUS_WAITING=1
uint8 STATUS_HOLDING=2
uint8 STATUS_FAILED=3
std_msgs/Header header
uint64 cycle_id
uint64 observation_id
uint8 status
string reason
float32 period_ms
float32 observe_ms
float32 prefill_ms
float32 act_ms
float32 publish_ms
float32 action_latency_ms
float32 decode_ms
float32 slack_ms
bool is_late
uint32 decode_steps
uint32 decode_steps_possible
uint32 text_rows
uint32 text_tokens
uint32 texts_waiting
uint32 texts_finished
uint32 prefixes_used
uint32 prefixes_total
uint32 rows_used
uint32 rows_total
uint64 kv_bytes
uint64 deadline_misses
string[] refusal_kinds
uint64[] refusal_counts
""",
    "oxygen_ros/msg/PlayerState": """uint8 MODE_IDLE=0
uint8 MODE_PLAYING=1
uint8 MODE_HOLDING=2
uint8 MODE_STOPPED=3
std_msgs/Header header
uint8 mode
uint64 chunk_id
uint32 next_index
uint64 actions_played
uint64 ticks_missed
uint64 steps_clamped
bool control_enabled
string reason
""",
    "oxygen_ros/msg/TextDelta": """uint8 KIND_ASK=0
uint8 KIND_SUBTASK=1
uint8 KIND_MEMORY=2
uint8 KIND_OTHER=3
uint8 FINISH_NONE=0
uint8 FINISH_STOP=1
uint8 FINISH_LENGTH=2
uint8 FINISH_CANCELLED=3
uint8 FINISH_SUPERSEDED=4
uint8 FINISH_EXPIRED=5
uint8 FINISH_REFUSED=6
uint8 FINISH_ERROR=7
std_msgs/Header header
string request_id
string task
uint8 kind
uint64 observation_id
uint32 seq
string text
uint32 num_tokens
bool is_final
uint8 finish_reason
string detail
""",
    "oxygen_ros/msg/TextRequest": """string request_id
string task
string prompt
uint32 max_tokens
int32 priority
float32 temperature
uint32 top_k
uint64 seed
float32 max_age_s
""",
}
