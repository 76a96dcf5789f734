package wire

import "encoding/json"

// Volume is a network volume.
type Volume struct {
	ID               string              `json:"id"`
	Name             string              `json:"name"`
	User             string              `json:"user"`
	ProjectName      string              `json:"project_name"`
	Configuration    json.RawMessage     `json:"configuration"`
	External         bool                `json:"external"`
	CreatedAt        string              `json:"created_at"`
	LastProcessedAt  string              `json:"last_processed_at"`
	Status           string              `json:"status"` // submitted, provisioning, active, failed
	StatusMessage    *string             `json:"status_message"`
	Deleted          bool                `json:"deleted"`
	DeletedAt        *string             `json:"deleted_at"`
	VolumeID         *string             `json:"volume_id"`
	ProvisioningData *VolumeProvisioning `json:"provisioning_data"`
	Cost             float64             `json:"cost"`
	Attachments      []VolumeAttachment  `json:"attachments"`
}

// VolumeProvisioning is what became of a volume's request.
type VolumeProvisioning struct {
	Backend          string  `json:"backend"`
	VolumeID         string  `json:"volume_id"`
	SizeGB           int64   `json:"size_gb"`
	AvailabilityZone *string `json:"availability_zone"`
	Price            float64 `json:"price"`
	Attachable       bool    `json:"attachable"`
	Detachable       bool    `json:"detachable"`
	BackendData      *string `json:"backend_data"`
}

// VolumeAttachment is an instance that has a volume mounted.
type VolumeAttachment struct {
	Instance       VolumeInstance `json:"instance"`
	AttachmentData *struct{}      `json:"attachment_data"`
}

// VolumeInstance names the instance of an attachment.
type VolumeInstance struct {
	Name        string  `json:"name"`
	FleetName   *string `json:"fleet_name"`
	InstanceNum int32   `json:"instance_num"`
	InstanceID  string  `json:"instance_id"`
}
