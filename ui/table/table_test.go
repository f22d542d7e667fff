package table

import (
	"fmt"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"

	"velo/ui/look"
)

func sample(t *testing.T, rows int) *Table {
	test.NewTempApp(t)
	fyne.CurrentApp().Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
	g := New(look.Small,
		Column{Title: "Name", Stretch: true},
		Column{Title: "TTFT", Unit: "ms", CopyUnit: "s", Right: true},
		Column{Title: "Tokens", Right: true})
	g.SetRows(rows, func(r, c int) Cell {
		switch c {
		case 0:
			return Cell{Text: fmt.Sprintf("row %d\twith a tab\nand a line", r)}
		case 1:
			return Cell{Text: fmt.Sprintf("%d", 100+r), Mark: "▪", Copy: fmt.Sprintf("0.%d0123", 100+r)}
		}
		return Cell{Text: fmt.Sprint(r), Ink: look.Red}
	})
	g.Resize(fyne.NewSize(600, g.MinSize().Height))
	return g
}

func TestCopyIsTabSeparatedAtFullPrecision(t *testing.T) {
	g := sample(t, 3)
	clip := test.NewClipboard()
	g.TypedShortcut(&fyne.ShortcutCopy{Clipboard: clip})
	want := "Name\tTTFT (s)\tTokens\n" +
		"row 0 with a tab and a line\t0.1000123\t0\n" +
		"row 1 with a tab and a line\t0.1010123\t1\n" +
		"row 2 with a tab and a line\t0.1020123\t2\n"
	if clip.Content() != want {
		t.Errorf("nothing selected copies\n%s\nwant\n%s", clip.Content(), want)
	}
	g.Select(1)
	g.TypedShortcut(&fyne.ShortcutCopy{Clipboard: clip})
	if got := strings.Split(clip.Content(), "\n"); len(got) != 3 || got[1] != "row 1 with a tab and a line\t0.1010123\t1" {
		t.Errorf("one row copies %q", clip.Content())
	}
	g.TypedShortcut(&fyne.ShortcutSelectAll{})
	g.TypedShortcut(&fyne.ShortcutCopy{Clipboard: clip})
	if clip.Content() != want {
		t.Errorf("all rows copy %q", clip.Content())
	}
}

// TestOnlyRowsInViewHaveObjects holds for a table of a hundred thousand rows wherever it is scrolled.
func TestOnlyRowsInViewHaveObjects(t *testing.T) {
	g := sample(t, 100_000)
	r := test.WidgetRenderer(g)
	for _, top := range []float32{0, 1000, 24 * 50_000, 24*100_000 - 300, 1e9, -500} {
		g.SetView(top, 600)
		if n := len(r.Objects()); n > 40*6+20 {
			t.Errorf("%d objects at %g", n, top)
		}
	}
	g.SetView(24*50_000, 600)
	found := false
	for _, o := range r.Objects() {
		if y := o.Position().Y; y > 24*50_001 && y < 24*50_020 && o.Visible() {
			found = true
		}
	}
	if !found {
		t.Error("there is nothing where the view is")
	}
}

func TestKeysMoveTheSelection(t *testing.T) {
	g := sample(t, 100)
	g.SetView(0, 240)
	var shown []float32
	g.OnShow = func(y, h float32) { shown = append(shown, y) }
	opened := -1
	g.OnOpen = func(r int) { opened = r }
	passed := ""
	g.OnKey = func(e *fyne.KeyEvent) { passed = string(e.Name) }
	for _, k := range []struct {
		key  fyne.KeyName
		want int
	}{{fyne.KeyDown, 0}, {fyne.KeyDown, 1}, {fyne.KeyUp, 0}, {fyne.KeyUp, 0}, {fyne.KeyEnd, 99}, {fyne.KeyDown, 99},
		{fyne.KeyHome, 0}, {fyne.KeyPageDown, 8}, {fyne.KeyPageUp, 0}, {fyne.KeyEscape, -1}} {
		g.TypedKey(&fyne.KeyEvent{Name: k.key})
		if g.Selected() != k.want {
			t.Errorf("%s selects %d, want %d", k.key, g.Selected(), k.want)
		}
	}
	if len(shown) == 0 || shown[4] != 24*99 {
		t.Errorf("the selected rows were not brought into view: %v", shown)
	}
	g.Select(7)
	g.TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	if opened != 7 {
		t.Errorf("enter opened %d", opened)
	}
	g.TypedKey(&fyne.KeyEvent{Name: fyne.KeyF2})
	if passed != "F2" {
		t.Errorf("a key of the page was not passed on: %q", passed)
	}
}

func TestPointerSelectsAndOpens(t *testing.T) {
	g := sample(t, 10)
	w := test.NewWindow(g)
	defer w.Close()
	w.Resize(fyne.NewSize(600, 400))
	at := func(row int) fyne.Position { return fyne.NewPos(40, float32(row+1)*24+10) }
	head := -1
	g.OnHead = func(c int) { head = c }
	opened := -1
	g.OnOpen = func(r int) { opened = r }
	g.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: at(3)}, Button: desktop.MouseButtonPrimary})
	if g.Selected() != 3 {
		t.Errorf("a press selects %d", g.Selected())
	}
	g.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: at(5)}, Button: desktop.MouseButtonPrimary, Modifier: fyne.KeyModifierShift})
	if from, to := g.selection(); from != 3 || to != 6 {
		t.Errorf("a press with shift selects %d to %d", from, to-1)
	}
	g.Tapped(&fyne.PointEvent{Position: fyne.NewPos(g.extent()-20, 10)})
	if head != 2 {
		t.Errorf("a tap on the last head tells of column %d", head)
	}
	g.DoubleTapped(&fyne.PointEvent{Position: at(4)})
	if opened != 4 {
		t.Errorf("a double tap opens %d", opened)
	}
	g.Tapped(&fyne.PointEvent{Position: fyne.NewPos(40, 24*30)})
	if g.Selected() != -1 {
		t.Error("a tap below the rows keeps the selection")
	}
}

func TestSelectionEndsWithItsRows(t *testing.T) {
	g := sample(t, 10)
	told := 99
	g.OnSelect = func(r int) { told = r }
	g.Select(9)
	g.SetRows(3, g.cell)
	if g.Selected() != -1 || told != -1 {
		t.Errorf("row %d is selected of three, %d was told", g.Selected(), told)
	}
	g.SetRows(0, nil)
	g.TypedKey(&fyne.KeyEvent{Name: fyne.KeyDown})
	g.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEnd})
	if g.Selected() != -1 {
		t.Errorf("row %d is selected of none", g.Selected())
	}
}

func TestWideTablesMoveSideways(t *testing.T) {
	test.NewTempApp(t)
	var columns []Column
	for i := range 20 {
		columns = append(columns, Column{Title: fmt.Sprintf("Column %d", i), Right: true})
	}
	g := New(look.Small, columns...)
	g.SetRows(2, func(r, c int) Cell { return Cell{Text: fmt.Sprint(r * c)} })
	g.Resize(fyne.NewSize(400, 100))
	passed := float32(0)
	g.OnScroll = func(e *fyne.ScrollEvent) { passed += e.Scrolled.DY }
	g.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.Delta{DX: -100}})
	if g.shift != 100 {
		t.Errorf("moved by %g, want 100", g.shift)
	}
	g.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.Delta{DX: -1e6}})
	if g.shift != g.overflow() || g.shift == 0 {
		t.Errorf("moved by %g of %g", g.shift, g.overflow())
	}
	g.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.Delta{DY: -40}})
	if passed != -40 {
		t.Error("the wheel got caught")
	}
}

// TestHeadsAreShown holds for a head of one letter too.
func TestHeadsAreShown(t *testing.T) {
	test.NewTempApp(t)
	g := New(look.Small, Column{Title: "Metric", Stretch: true}, Column{Title: "n", Right: true}, Column{Title: "p50", Unit: "s", Right: true})
	g.SetRows(1, func(_, c int) Cell { return Cell{Text: "1"} })
	g.Resize(fyne.NewSize(900, 60))
	shown := map[string]bool{}
	for _, o := range test.WidgetRenderer(g).Objects() {
		if c, ok := o.(*canvas.Text); ok && c.Visible() {
			shown[c.Text] = true
		}
	}
	for _, want := range []string{"Metric", "n", "p50", "s", "1"} {
		if !shown[want] {
			t.Errorf("%q is not shown", want)
		}
	}
	if w := g.extent(); w > 300 {
		t.Errorf("three short columns take %g units", w)
	}
}

func TestCut(t *testing.T) {
	g := sample(t, 1)
	long := strings.Repeat("a long text ", 30)
	g.SetRows(1, func(_, c int) Cell { return Cell{Text: map[int]string{0: long}[c]} })
	if got := g.Cut(0); len(got) != 1 || got[0] != 0 {
		t.Errorf("columns %v are cut, want the first", got)
	}
}

// TestColumnsGiveWayTogether: what one column cannot give another does, down to the least of all, and only what is
// lacking.
func TestColumnsGiveWayTogether(t *testing.T) {
	test.NewTempApp(t)
	long := strings.Repeat("word ", 20)
	tab := New(look.Small, Column{Title: "First", Stretch: true}, Column{Title: "Short", Stretch: true, Least: 100}, Column{Title: "Fixed", Least: 60}, Column{Title: "Long", Stretch: true, Least: 120})
	tab.SetRows(1, func(_, c int) Cell { return Cell{Text: []string{long, "a", "b", long}[c]} })
	natural := append([]float32(nil), tab.natural...)
	total := 4 * tab.gap()
	for _, w := range natural {
		total += w
	}
	least := []float32{96, 100, 60, 120}
	leastTotal := 4*tab.gap() + 96 + 100 + 60 + 120
	for width := leastTotal - 50; width < total+50; width += 7 {
		sum := 4 * tab.gap()
		for c, w := range tab.widths(width) {
			sum += w
			if w < least[c] || w > natural[c]+0.01 {
				t.Fatalf("in a width of %v column %d has %v, which is not within %v and %v", width, c, w, least[c], natural[c])
			}
		}
		if want := fyne.Max(leastTotal, fyne.Min(total, width)); sum < want-1 || sum > want+1 {
			t.Errorf("in a width of %v the columns take %v, want %v", width, sum, want)
		}
	}
}
