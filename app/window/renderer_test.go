package window

import "testing"

func TestBySoftware(t *testing.T) {
	for name, want := range map[string]bool{
		"llvmpipe (LLVM 15.0.6, 256 bits)": true, "softpipe": true, "Google SwiftShader": true, "GDI Generic": true,
		"NVIDIA GB10/PCIe": false, "Mesa Intel(R) UHD Graphics 620 (KBL GT2)": false, "AMD Radeon RX 6800 (radeonsi, navi21, LLVM 15.0.6)": false, "": false,
	} {
		if bySoftware(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
