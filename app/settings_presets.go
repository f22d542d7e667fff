package app

import (
	"slices"

	"velo/ui/console"
)

// familyNone is a server that is sent nothing about reasoning.
const familyNone family = "none"

// presets are kinds of servers with what is known of them.
var presets = []console.Preset{
	{ID: "openai", Name: "OpenAI", URL: "https://api.openai.com/v1", Key: true, Reasoning: string(familyOpenAI)},
	{ID: "openrouter", Name: "OpenRouter", URL: "https://openrouter.ai/api/v1", Key: true, Reasoning: string(familyOpenRouter)},
	{ID: "groq", Name: "Groq", URL: "https://api.groq.com/openai/v1", Key: true, Reasoning: string(familyOpenAI)},
	{ID: "together", Name: "Together", URL: "https://api.together.xyz/v1", Key: true, Reasoning: string(familyOpenRouter)},
	{ID: "mistral", Name: "Mistral", URL: "https://api.mistral.ai/v1", Key: true, Reasoning: string(familyOllama)},
	{ID: "deepseek", Name: "DeepSeek", URL: "https://api.deepseek.com/v1", Key: true, Reasoning: string(familyDeepSeek)},
	{ID: "llamacpp", Name: "llama.cpp", URL: "http://127.0.0.1:8080/v1", Reasoning: string(familyLlamaCPP)},
	{ID: "vllm", Name: "vLLM", URL: "http://127.0.0.1:8000/v1", Reasoning: string(familyVLLM)},
	{ID: "sglang", Name: "SGLang", URL: "http://127.0.0.1:30000/v1", Reasoning: string(familySGLang)},
	{ID: "lmstudio", Name: "LM Studio", URL: "http://127.0.0.1:1234/v1"},
	{ID: "ollama", Name: "Ollama", URL: "http://127.0.0.1:11434/v1", Reasoning: string(familyOllama)},
	{ID: "custom", Name: "Another server"},
}

// reasoningWays are the families by what is sent to switch reasoning.
var reasoningWays = []console.Choice{
	{ID: "", Name: "As the kind of server has it"},
	{ID: string(familyVLLM), Name: "chat_template_kwargs (vLLM, Velo)"},
	{ID: string(familySGLang), Name: "chat_template_kwargs (SGLang)"},
	{ID: string(familyLlamaCPP), Name: "chat_template_kwargs (llama.cpp)"},
	{ID: string(familyOllama), Name: "reasoning_effort, none to high (Ollama, Mistral)"},
	{ID: string(familyOpenAI), Name: "reasoning_effort, the least it takes (OpenAI, Groq)"},
	{ID: string(familyOpenRouter), Name: "reasoning.enabled (OpenRouter, Together)"},
	{ID: string(familyDeepSeek), Name: "thinking.type (DeepSeek)"},
	{ID: string(familyAnthropic), Name: "thinking.budget_tokens (Anthropic)"},
	{ID: string(familyNone), Name: "Nothing is sent"},
}

// chosenFamily is the family that the user chose for an endpoint, by itself or with the kind of server.
func chosenFamily(e console.Endpoint) (f family, ok bool) {
	if e.Reasoning != "" {
		return family(e.Reasoning), true
	}
	for _, p := range presets {
		if p.ID == e.Preset && p.Reasoning != "" {
			return family(p.Reasoning), true
		}
	}
	return "", false
}

// knownPreset and knownWay tell whether a word is one of the program's.
func knownPreset(id string) bool {
	return id == "" || slices.ContainsFunc(presets, func(p console.Preset) bool { return p.ID == id })
}

func knownWay(id string) bool {
	return slices.ContainsFunc(reasoningWays, func(w console.Choice) bool { return w.ID == id })
}
