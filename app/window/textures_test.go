package window

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestTextureLifeIsFynes shows that the linked variable is the one that FYNE_CACHE sets: a child with
// FYNE_CACHE=7s finds seven seconds in it.
func TestTextureLifeIsFynes(t *testing.T) {
	if os.Getenv("VELO_TEST_TEXTURES") != "" {
		if textureLife != 7*time.Second || textureCheck != 7*time.Second/2 {
			t.Fatalf("life %v, check %v", textureLife, textureCheck)
		}
		keepTexturesShortly()
		if textureLife != 7*time.Second {
			t.Fatal("the user's own FYNE_CACHE was overruled")
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestTextureLifeIsFynes$")
	cmd.Env = append(os.Environ(), "FYNE_CACHE=7s", "VELO_TEST_TEXTURES=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if os.Getenv("FYNE_CACHE") == "" {
		keepTexturesShortly()
		if textureLife != 10*time.Second {
			t.Fatalf("life %v", textureLife)
		}
	}
}
