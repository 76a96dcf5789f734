package wire

// Secret is a value that runs of a project can use. Lists leave the value out.
type Secret struct {
	ID    string  `json:"id"`
	Name  string  `json:"name"`
	Value *string `json:"value"`
}
