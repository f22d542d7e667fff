package otlp

import (
	"fmt"
	"strconv"

	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// portOwner names the process that listens on a port, as far as this user may see it.
func portOwner(port string) string {
	all, err := net.Connections("tcp")
	if err != nil {
		return ""
	}
	for _, c := range all {
		if c.Status != "LISTEN" || strconv.Itoa(int(c.Laddr.Port)) != port || c.Pid == 0 {
			continue
		}
		if p, err := process.NewProcess(c.Pid); err == nil {
			if name, err := p.Name(); err == nil {
				return fmt.Sprintf("%s (process %d)", name, c.Pid)
			}
		}
		return fmt.Sprintf("process %d", c.Pid)
	}
	return ""
}
