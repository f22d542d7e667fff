package console

// Server is one that was found on this machine.
type Server struct {
	Kind       string // "vLLM", "llama.cpp" …; ServerUnknown where it does not tell
	Version    string // empty = it does not tell
	URL        string // base URL with /v1
	Models     []string
	Locked     bool   // it wants a key
	Down       string // why it cannot be measured yet: a sentence; empty = it can
	EndpointID string // the endpoint that has this address already; empty = none
}

// The kinds of servers that are told apart.
const (
	ServerVelo     = "Velo"
	ServerScripted = "Velo's scripted endpoint"
	ServerVLLM     = "vLLM"
	ServerSGLang   = "SGLang"
	ServerLlama    = "llama.cpp"
	ServerLMStudio = "LM Studio"
	ServerOllama   = "Ollama"
	ServerUnknown  = "OpenAI-compatible server"
)
