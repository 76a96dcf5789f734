package wire

// LogPage is a piece of a job's output.
type LogPage struct {
	Logs        []LogEvent `json:"logs"`
	ExternalURL *string    `json:"external_url"`
	NextToken   *string    `json:"next_token"`
}

// LogEvent is some output of one moment.
type LogEvent struct {
	Timestamp string `json:"timestamp"`
	LogSource string `json:"log_source"`
	Message   []byte `json:"message"` // base64
}

// LogStdout is the source of all output: a job's streams are one.
const LogStdout = "stdout"
