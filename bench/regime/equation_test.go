package regime

import (
	"testing"

	"velo/bench"
)

func TestEquations(t *testing.T) {
	for s, want := range map[string]bool{
		"det(A) = ad - bc": true, "f(x) = 3x + 2": true, "P(A, B) = P(A) * P(B)": true,
		"So, 1 km/h * 3.6 = 3.6 km/h.": true, "12 * 4 = 48": true, "$120 - $30 = $90": false, // two sums of money are an inline formula to the lexer
		"Future Value = (Current Amount / Interest Rate) x (Number of Periods)": true,
		"Net profit = total revenue - total cost":                               true, "**Average speed** = total distance / total time": true,
		"x = a + b;": false, "total = price * count": false, "Background TokenType = -1 - iota": false,
		"f(x) == g(x) + 1": false, "const int n = a * b": false, "name=value": false, "size = len(data) / 2": false,
		"The sum is the price = the cost and we have two of it": false, "Total price is = a + b": false,
		"rate = tokens / time": false, "URL = AT + URI": false, "self.x = a + b": false, "": false, "=": false, "a = ": false,
	} {
		if got := equationOf([]byte(s)) > 0; got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// An equation among sentences is mathematics, and the sentences stay prose.
func TestEquationInAParagraph(t *testing.T) {
	const before, equation, after = "The profit of the year follows from two sums:\n", "Net profit = total revenue - total cost\n", "It was higher than in the year before.\n"
	var c Classifier
	c.Push(before+equation+after, bench.Content)
	spans := c.Spans()
	if len(spans) != 3 || spans[1].Regime != Mathematics || spans[1].From != len(before) || spans[1].To != len(before)+len(equation) {
		t.Errorf("%+v", spans)
	}
}

// A quotation of nothing but blanks before a comment was a fault of the lexer.
func TestQuotedComment(t *testing.T) {
	for _, s := range []string{">     /* blah */\n", "> \t// x\n", ">  /*"} {
		var c Classifier
		c.Push(s, bench.Content)
		if n := len(c.Spans()); n != 1 {
			t.Errorf("%q: %d spans", s, n)
		}
	}
}
