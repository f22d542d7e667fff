package console

import (
	"encoding/json"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime"
	"velo/bench/regime/share"
)

// Chat is one line of the list of chats.
type Chat struct {
	ID       string
	Title    string
	Endpoint string // name
	Model    string
	Began    time.Time
	Changed  time.Time
	Turns    int    // on the branch that is shown
	Found    string // where a search found its words: a piece of text around them; empty without a search
}

// ChatParameters are what a chat sends besides its messages. What is nil or empty is not sent.
type ChatParameters struct {
	System      string
	Temperature *float64
	TopP        *float64
	MinP        *float64
	TopK        *int
	MaxTokens   *int
	Seed        *int64
	Reasoning   string          // ReasoningDefault, ReasoningOff, "low", "medium" or "high"
	Extra       json.RawMessage // an object with further members of the body; wins over the others
	Tools       json.RawMessage // an array of tool definitions
}

// How much a model is to reason.
const (
	ReasoningDefault = ""    // nothing is sent
	ReasoningOff     = "off" // what turns it off at this server is sent, and the turn says what happened
)

// ChatImage is a picture of a message.
type ChatImage struct {
	Name string
	MIME string // image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// ChatCall is a call of a tool that the model asks for. Velo shows it and does not run it.
type ChatCall struct{ Name, Arguments string }

// ChatTurn is a question and what came of it.
type ChatTurn struct {
	ID       string
	Parent   string   // the turn before it; empty = the first
	Version  int      // which of the questions at this place it is, from 0
	Versions []string // IDs of all turns at this place, this one among them, oldest first
	Asked    time.Time
	Prompt   string
	Fill     int    // tokens of context fill before the prompt, 0 = none
	FillBy   string // how their number is known: "tokenizer", "server" or "estimate"
	Images   []ChatImage
	Tool     string   // for a tool's result: the name of the tool whose call it answers
	Results  []string // for the results of several calls: of those of the turn before, in their order

	Answer    string
	Reasoning string
	Calls     []ChatCall
	Status    bench.Status // empty while it runs
	Finish    string       // finish reason
	Error     string       // what, why and what to do
	Remarks   []string     // what happened to parameters: "Reasoning was turned off by chat_template_kwargs; 214 reasoning tokens came all the same."

	Measured *measure.Request // nil until it has ended
	Source   measure.Source   // of its token counts
	Session  string           // session that holds its raw events, and the number of the request in it
	Request  int
}

// Conversation is a chat with the turns of the branch that is shown, first to last.
type Conversation struct {
	Chat
	EndpointID string
	Parameters ChatParameters
	Turns      []ChatTurn
}

// ChatMessage is what is sent next.
type ChatMessage struct {
	Text   string
	Images []ChatImage
	Fill   int    // tokens of context fill, 0 = none
	Tool   string // not empty: Text is the result of the last turn's call of this tool
	// Results are the results of the last turn's calls, in their order, where it has several. A call
	// without a result is answered with a sentence that says so.
	Results []string
	// Instead is the turn that this message replaces, as another version at the same place (edit and
	// resend). Empty: it follows the last turn.
	Instead string
}

// ChatLive is the chat's turn that goes on, or the last that did. Taking it is cheap: texts are not
// copied.
type ChatLive struct {
	Active    bool
	ChatID    string
	TurnID    string
	Phase     string // "preparing" (a fill is made), "waiting", "reasoning", "answering" or ""
	Answer    string // so far
	Reasoning string
	Call      string // names and arguments of tool calls, as they come
	Elapsed   time.Duration
	Snapshot  measure.Snapshot
	// Tokens of the turn by channel so far, and how they are known.
	AnswerTokens, ReasoningTokens int
	Source                        measure.Source
	// Gaps between chunks so far, seconds: median, 90th percentile, longest. Missing without two.
	GapP50, GapP90, GapMax measure.Num
	// Gaps are those gaps, to 0.1 %, and GapCounts how often each came.
	Gaps, GapCounts []float64
	TTFT, TTFO      measure.Num
	// Context is the tokens that the prompt had, by the server's usage; 0 = not known yet.
	Context int
}

// ChatStatistics is what the panel beside a chat shows when nothing runs: of one turn, or of all.
type ChatStatistics struct {
	Requests []measure.Request
	Run      *measure.Run            // over the turns asked for; nil when there are none
	Rolling  []measure.RollingSample // the requests end to end, from 0, with no pause between them
	Starts   []time.Duration         // where on that line each request begins
	Gaps     []float64               // seconds, of each chunk after the first
	Kinds    [][]regime.Regime       // of each arrival of each request; nil where its text is not kept
	Shares   []share.Share           // the same by kind of text
}

// Chats is the part of the program that converses. The methods keep to the same rules as Console's.
type Chats interface {
	// List gives the chats, latest first; with words, those that hold all of them in title, prompts or
	// answers.
	List(words string) ([]Chat, error)
	NewChat(endpointID, model string) (Conversation, error)
	Chat(id string) (Conversation, error)
	RenameChat(id, title string) error
	// DeleteChat removes a chat for good, and with it the sessions that hold its raw events.
	DeleteChat(id string) error
	SetChatModel(id, endpointID, model string) error
	SetChatParameters(id string, p ChatParameters) error
	// ShowTurn puts the branch that this turn lies on in view.
	ShowTurn(chatID, turnID string) error
	// Send asks the next question and returns; its course is read from Live. Only one turn goes on at a
	// time.
	Send(chatID string, m ChatMessage) error
	// StopChat ends the turn that goes on; what came is kept with the status "stopped".
	StopChat()
	Live() ChatLive
	// Statistics are those of one turn, or of the branch shown when turnID is empty.
	Statistics(chatID, turnID string) (ChatStatistics, error)
	// Text gives a turn, or the branch shown, as "markdown", "json" or "curl" (the request that was
	// sent, with the key left out).
	Text(chatID, turnID, format string) (string, error)
	// Fills are the sizes of context fill to offer, tokens: 1K = 1024 to 512K.
	Fills() []int
}

// ChangedChats is sent when the list of chats or a turn changed: begun, ended; not for every token.
const ChangedChats = "chats"
