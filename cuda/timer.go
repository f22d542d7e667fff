//go:build linux && cuda && cgo

package cuda

import (
	"time"

	"gorgonia.org/cu"
)

// Time runs f and gives the time its launches took on the device, by events
// around them in the device's stream.
func (d *Device) Time(f func() error) (took time.Duration, err error) {
	err = d.on(func() error {
		begin, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			return err
		}
		defer cu.DestroyEvent(&begin)
		end, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			return err
		}
		defer cu.DestroyEvent(&end)
		if err := begin.Record(d.stream); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
		if err := end.Record(d.stream); err != nil {
			return err
		}
		if err := end.Synchronize(); err != nil {
			return err
		}
		ms, err := begin.Elapsed(end)
		took = time.Duration(ms * float64(time.Millisecond))
		return err
	})
	return took, err
}
