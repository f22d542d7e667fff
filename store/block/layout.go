package block

// A layout is the columns of one block, in the order of docs/store.md.
type layout struct {
	events   column // JSON, one event a line
	groups   column // per request: its number (difference to the one before) and how many chunks
	presence column // per request: runs of present user stamps, kernel stamps, usage and exact counts
	channels column // per request: pairs of channel and how many chunks in a row
	reads    column // differences of read numbers
	times    planes // differences of the leading stamp
	gaps     planes // the other stamp as a difference to the leading one
	usage    column // differences of the running usage
	exact    column // exact token counts
	lengths  column // of the texts, in bytes
	texts    column // all texts, put together

	// While reading:
	text  string // what is left of texts
	flags []byte // of the group's chunks: which fields are present
}

func (l *layout) columns() []*column {
	all := []*column{&l.events, &l.groups, &l.presence, &l.channels, &l.reads}
	all = append(all, l.times.columns()...)
	all = append(all, l.gaps.columns()...)
	return append(all, &l.usage, &l.exact, &l.lengths, &l.texts)
}

// newLayout names the columns, for messages.
func newLayout() *layout {
	l := &layout{}
	for name, c := range map[string]*column{
		"events": &l.events, "groups": &l.groups, "presence": &l.presence, "channels": &l.channels,
		"reads": &l.reads, "usage": &l.usage, "exact": &l.exact, "lengths": &l.lengths, "texts": &l.texts,
	} {
		c.name = name
	}
	for name, p := range map[string]*planes{"times": &l.times, "gaps": &l.gaps} {
		for _, c := range p.columns() {
			c.name = name
		}
	}
	return l
}
