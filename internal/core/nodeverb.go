package core

// NodeVerb is what is asked of a node: the word that the API, the commands and the recordings have.
type NodeVerb string

// The verbs. The empty one asks for nothing: only the reason or the time of return changes.
const (
	VerbDrain          NodeVerb = "drain" // no new jobs
	VerbUndrain        NodeVerb = "undrain"
	VerbResume         NodeVerb = "resume" // into service again, whatever was said of it
	VerbDown           NodeVerb = "down"   // its jobs end
	VerbFail           NodeVerb = "fail"
	VerbFuture         NodeVerb = "future"
	VerbPowerUp        NodeVerb = "power_up"
	VerbPowerDown      NodeVerb = "power_down"
	VerbPowerDownASAP  NodeVerb = "power_down_asap"
	VerbPowerDownForce NodeVerb = "power_down_force" // its jobs end
	VerbReboot         NodeVerb = "reboot"           // when it is empty
	VerbRebootASAP     NodeVerb = "reboot_asap"      // likewise, and no new jobs until then
	VerbCancelReboot   NodeVerb = "cancel_reboot"

	// What Bireme itself says of what it was asked to do and could not.
	VerbRebootFailed NodeVerb = "reboot_failed"
	VerbResumeFailed NodeVerb = "resume_failed"
)

// NodeVerbs are those that people may use, in the order in which messages list them.
var NodeVerbs = []NodeVerb{
	VerbDrain, VerbUndrain, VerbResume, VerbDown, VerbFail, VerbFuture, VerbPowerUp, VerbPowerDown, VerbPowerDownASAP,
	VerbPowerDownForce, VerbReboot, VerbRebootASAP, VerbCancelReboot,
}

// EndsJobs reports whether what runs on a node ends with the verb.
func (v NodeVerb) EndsJobs() bool { return v == VerbDown || v == VerbPowerDownForce }

// NeedsReason reports whether a node that has no reason yet must be given one.
func (v NodeVerb) NeedsReason() bool { return v == VerbDrain || v == VerbDown || v == VerbFail }
