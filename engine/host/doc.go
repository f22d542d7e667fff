// Package host is the machine that the engine runs on: how much memory it may
// still use, a watchdog on that, which processors it should run on, and a log
// that never makes it wait.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package host
