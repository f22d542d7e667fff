package settingspage

import "testing"

func TestBytesHaveThreeDigits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1.00 KiB", 10230: "9.99 KiB", 10239: "10.0 KiB", 100 << 10: "100 KiB", 160 << 10: "160 KiB", 1023 << 10: "1.00 MiB",
		999 << 10: "999 KiB", 1 << 20: "1.00 MiB", 48<<20 + 1<<19: "48.5 MiB", 5 << 30: "5.00 GiB", 3 << 40: "3.00 TiB", 2000 << 40: "2000 TiB",
	} {
		if got := bytes(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
