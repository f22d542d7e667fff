package client

import "encoding/json"

// ToolCall is a call of a tool that a model asked for.
type ToolCall struct {
	ID        string `json:"id,omitempty"` // the server's; a result names it
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it
}

// Calls are the result's tool calls, in the order in which they began.
func (r Result) Calls() []ToolCall {
	var calls []ToolCall
	_ = json.Unmarshal([]byte(r.ToolCalls), &calls) // it is this package's own JSON, or empty
	return calls
}

// wireCall is a call as a message of the conversation has it.
type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func wireCalls(calls []ToolCall) []wireCall {
	list := make([]wireCall, len(calls))
	for i, c := range calls {
		list[i] = wireCall{c.ID, "function", wireFunction{c.Name, c.Arguments}}
	}
	return list
}

// Body is the request's body as it is sent. It has no key in it.
func (k *Call) Body() json.RawMessage { return k.body }
