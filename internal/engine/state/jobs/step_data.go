package jobs

import "strconv"

// StepData is the data of the events of a step.
func StepData(id int32) []byte {
	return append(strconv.AppendInt([]byte(`{"step":`), int64(id), 10), '}')
}
