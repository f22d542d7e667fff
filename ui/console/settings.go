package console

import (
	"context"
	"time"

	"velo/bench/measure"
)

// Settings is what the window keeps from one start to the next.
type Settings struct {
	Theme     string  // "auto", "dark" or "light"
	TextSize  int     // percent; 0 = 100
	Width     float32 // of the window, in units
	Height    float32
	Page      string // id of the last page
	ExportDir string // where the last export went; empty = the documents folder
	LastSpec  RunSpec
}

// TextSizes are the percents that TextSize takes.
var TextSizes = []int{85, 100, 115, 130, 150}

// Choice is a word of the program and what it is called on screen.
type Choice struct{ ID, Name string }

// Preset is a kind of server, as a beginning for an endpoint.
type Preset struct {
	ID   string
	Name string
	URL  string // where it usually is; empty = nowhere in particular
	Key  bool   // it wants a key
	// Reasoning is how reasoning is switched there, one of ReasoningWays.
	Reasoning string
}

// ParameterKind is a parameter that a model's settings have a field for.
type ParameterKind struct {
	Name string // in the body of a request
	Hint string // what it takes: "0 to 2"
}

// ModelSettings are what is set for a model of an endpoint. They hold in runs and chats where the suite,
// or the chat, says nothing else.
type ModelSettings struct {
	Parameters map[string]string // by ParameterKind.Name, as they are written; what is empty is not sent
	Extra      string            // a JSON object with further members of the body; empty = none
	Reasoning  string            // ReasoningDefault, ReasoningOff, "low", "medium" or "high"
	Tokenizer  string            // TokenizerNone, TokenizerServer, or a path
}

// Tokenizers that are no path.
const (
	TokenizerNone   = ""       // the server's usage counts, and estimates where it says nothing
	TokenizerServer = "server" // the server's own /tokenize
)

// What a trial found out about a tokenizer. Only a verified one is used.
const (
	TokenizerNotTried = ""              // since it was set, or its file changed
	TokenizerVerified = "verified"      // it counted an answer as the server did
	TokenizerWrong    = "not the model" // it did not
	TokenizerUnclear  = "unclear"       // there was nothing to compare it with, or it could not be read
)

// Model is a model of an endpoint: what is set for it and what a trial found out.
type Model struct {
	Name     string
	ByHand   bool // the user named it: the endpoint need not list it
	Settings ModelSettings

	Tried   time.Time // zero = it was not tried
	Remarks []string  // what came of parameters and reasoning: sentences
	Verdict string    // about the tokenizer
	Why     string    // a sentence about the verdict
	// Ratio is tokens as the server counts them over the estimate by text length: an estimate itself, from
	// so many tokens. Missing = not known.
	Ratio       measure.Num
	RatioTokens int
}

// Limits are how long a request may take. 0 = as long as it likes, where that is allowed.
type Limits struct {
	Connect   time.Duration // to the server
	FirstByte time.Duration // from the request to the first byte
	Idle      time.Duration // between two pieces of an answer
	Total     time.Duration
}

// Category is a word that the user sorts sessions by.
type Category struct {
	Name     string
	Sessions int
}

// Backup is a copy of the database.
type Backup struct {
	Name  string
	Path  string
	Made  time.Time
	Bytes int64
	Why   string // "by itself", "asked for", "before an update" or "before a restore"
}

// Data is where everything is kept.
type Data struct {
	Dir       string
	Bytes     int64
	Keys      string // where keys are kept, in words
	Fixed     string // why the folder cannot be moved: a sentence; empty = it can
	Moving    string // the folder that it moves to at the next start; empty = it stays
	Restoring string // Name of the backup that is restored at the next start; empty = none
}

// Preferences is the part of the program that keeps what the user sets. What is saved is on disk when the
// method returns. The methods keep to the same rules as Console's.
type Preferences interface {
	Presets() []Preset
	ReasoningWays() []Choice // how reasoning can be switched; the first is "as the server says of itself"
	ParameterKinds() []ParameterKind

	// NamedModels are the models of an endpoint that the user named, or set something for.
	NamedModels(endpointID string) ([]Model, error)
	AddModel(endpointID, model string) error
	// RemoveModel forgets a model and what was set for it.
	RemoveModel(endpointID, model string) error
	Model(endpointID, model string) (Model, error)
	// SaveModel checks the settings and keeps them; an error names the field and what it takes.
	SaveModel(endpointID, model string, s ModelSettings) error
	// TryModel asks the model once, for a short answer, with everything that is set for it: which parameters
	// the server takes, what becomes of reasoning, and whether the tokenizer counts as the server does.
	TryModel(ctx context.Context, endpointID, model string) (Model, error)

	Limits() Limits
	SaveLimits(Limits) error

	Categories() ([]Category, error)
	AddCategory(name string) error
	// RenameCategory gives a category, and its sessions, another name; that of another puts them together.
	RenameCategory(old, name string) error
	DeleteCategory(name string) error // its sessions stay
	SetCategory(sessionID, name string) error

	Data() Data
	// MoveData moves the data folder at the next start; an empty folder takes that back.
	MoveData(to string) error
	Backups() ([]Backup, error) // newest first
	MakeBackup() (Backup, error)
	DeleteBackup(name string) error
	// RestoreBackup puts a backup in the place of the database at the next start; an empty name takes that
	// back.
	RestoreBackup(name string) error
}

// The events of Changes that come from here.
const (
	ChangedCategories = "categories" // the list of them
	ChangedModels     = "models"     // what is set for a model
	ChangedData       = "data"       // what happens to the data folder at the next start, or the backups
)
