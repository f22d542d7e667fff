package console

import (
	"time"

	"velo/bench/otlp"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/bench/report"
)

// TelemetrySettings are what the user chooses about the receiver of telemetry.
type TelemetrySettings struct {
	On       bool
	Host     string // that it listens on; empty = this machine only
	GRPC     int    // port; 0 = gRPC is not taken
	HTTP     []int  // ports
	HasToken bool   // senders must show a token, which is kept elsewhere and never comes back

	Certificate string // file of the certificate chain, in PEM, that it speaks TLS with; empty = plain text
	Key         string // file of its key

	Pages []TelemetryPage // metrics pages to read, of engines that do not push

	Keep      time.Duration // so long the text and chunks of a stream stay that says nothing more
	KeepBytes int64         // of memory that streams may take
	Back      time.Duration // before the press, that a recording of all streams takes in too
	For       time.Duration // a recording ends by itself after so long,
	Tokens    int           // after so many tokens,
	Bytes     int64         // or at about so many bytes of events

	DeleteAfter time.Duration // recordings that are older are deleted; 0 = none is for its age
	DiskBytes   int64         // of disk that recordings may take: over it the oldest are deleted; 0 = no bound
}

// TelemetryPage is a metrics page of an engine that does not push.
type TelemetryPage struct {
	ID       string // of its token among the secrets; empty = a new page
	URL      string
	Every    time.Duration // between two readings, 1 to 60 s
	HasToken bool          // it is sent a bearer token, which is kept elsewhere and never comes back
	// Token is what SaveSettings keeps as its token: nil leaves it as it is, an empty one removes it.
	Token *string `json:"-"`
}

// TelemetrySource is an engine that tells of itself. Its logs may name a service and its metrics an
// instance of it: both are one source.
type TelemetrySource struct {
	Name   string         // service.name, with the instance where its logs name it too
	Status *stream.Status // the latest status record; nil = none came
	// Engines are the figures of its instances.
	Engines []series.Engine
	Clock   *otlp.Clock // nil = nothing is known of its clock
}

// TelemetryRecorded is a session that was recorded from telemetry since the program began.
type TelemetryRecorded struct {
	otlp.RecordingState
	Title string
	Ended time.Time
	Error string // why it could not be kept
}

// TelemetryDisk is what the recordings from telemetry take on disk.
type TelemetryDisk struct {
	Recordings int // that have ended
	Bytes      int64
	Oldest     time.Time
	// Writing are the recordings that go on, which are not among Recordings, and WritingBytes what is on disk of them
	// so far.
	Writing      int
	WritingBytes int64
}

// TelemetrySnapshot is what the page shows.
type TelemetrySnapshot struct {
	otlp.Snapshot
	Sources  []TelemetrySource
	Recorded []TelemetryRecorded // that have ended, the latest first
	Disk     TelemetryDisk
	// Deaf says why the engine of this program sends nothing although it runs: a sentence, or empty.
	Deaf string
}

// TelemetryPair is a recorded session beside one that the client measured at the same time.
type TelemetryPair = report.Beside

// Telemetry is the receiver behind the window. FreePort, SaveSettings, Record, StopRecording and Compare
// may take as long as a network or a disk; the others return at once.
type Telemetry interface {
	Settings() TelemetrySettings
	// SaveSettings keeps what was chosen and makes it so. A nil token leaves the token as it is, an empty
	// one removes it. An address that cannot be had is no error: it is in the state.
	SaveSettings(s TelemetrySettings, token *string) error
	// FreePort is a port from this one on that can be had and that the settings do not name; 0 = none was
	// found.
	FreePort(from int) int
	// State is the facts alone.
	State() otlp.State
	Snapshot(q otlp.Query) TelemetrySnapshot
	// Clear empties the views of these streams, without any all views, and nothing else.
	Clear(streams ...stream.Key)
	// Record begins a session of these streams; of none: of all that run and all that come.
	Record(streams []stream.Key) error
	// StopRecording ends a recording; what came is kept.
	StopRecording(id string)
	// Disk is what recordings take.
	Disk() TelemetryDisk
	// Compare finds the sessions that the client measured while one was recorded from telemetry.
	Compare(id string) ([]TelemetryPair, error)
}

// ChangedTelemetry is sent when the receiver's settings changed, or a recording began or ended.
const ChangedTelemetry = "telemetry"
