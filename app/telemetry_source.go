package app

import (
	"slices"
	"strings"

	"velo/bench/otlp"
	"velo/ui/console"
)

// sourcesOf puts together what an engine tells: the logs of a service name no instance, its metrics and
// spans do ("service/instance").
func sourcesOf(s *otlp.Snapshot) []console.TelemetrySource {
	names := map[string]bool{}
	for _, x := range s.State.Statuses {
		names[x.Service] = true
	}
	for _, x := range s.Engines {
		names[x.Service] = true
	}
	for _, x := range s.Clocks {
		names[x.Service] = true
	}
	for _, x := range s.Streams {
		names[x.Service] = true
	}
	var list []console.TelemetrySource
	at := func(service string) *console.TelemetrySource {
		name := rootOf(names, service)
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
		list = append(list, console.TelemetrySource{Name: name})
		return &list[len(list)-1]
	}
	for name := range names {
		at(name)
	}
	for i := range s.State.Statuses {
		status := s.State.Statuses[i]
		if x := at(status.Service); x.Status == nil || status.Received < x.Status.Received {
			x.Status = &status
		}
	}
	for _, e := range s.Engines {
		x := at(e.Service)
		x.Engines = append(x.Engines, e)
	}
	for i := range s.Clocks {
		clock := s.Clocks[i]
		// Logs bound the clock; of an instance's own the one with more pairs says more.
		if x := at(clock.Service); x.Clock == nil || clock.Pairs > x.Clock.Pairs || x.Clock.Pairs == 0 && clock.Records > x.Clock.Records {
			x.Clock = &clock
		}
	}
	slices.SortFunc(list, func(a, b console.TelemetrySource) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// rootOf is the service that a name is an instance of, where there is one of that name, else the name.
func rootOf(names map[string]bool, name string) string {
	for i := range len(name) {
		if name[i] == '/' && i > 0 && names[name[:i]] {
			return name[:i]
		}
	}
	return name
}
