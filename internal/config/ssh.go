package config

// SSH is the listener that leads users into their jobs by SSH.
type SSH struct {
	Listen string `yaml:"listen"` // HOST:PORT; empty: none
	// HOST:PORT told to clients; empty: the host by which they reach the API, and the port of listen
	Advertise string `yaml:"advertise"`
	// dstack clients check the host's key against their known_hosts and need one connection instead of two in each
	// other; the first connection from a machine asks its user
	SSHProxy           bool  `yaml:"sshproxy"`
	Connections        int64 `yaml:"connections"`          // open, of all users; 0: no limit
	ConnectionsPerUser int64 `yaml:"connections_per_user"` // open, of one; 0: no limit
}

func (d *decoder) checkSSH(s *SSH) {
	if s.Connections < 0 || s.ConnectionsPerUser < 0 {
		d.at("ssh.connections", "less than 0; 0 means no limit")
	}
	if s.Advertise != "" && s.Listen == "" {
		d.at("ssh.advertise", "%q, but ssh.listen is empty: there is no listener", s.Advertise)
	}
}
