#include "textflag.h"

// func pause()
// ISB takes tens of cycles; YIELD does nothing on most processors.
TEXT ·pause(SB), NOSPLIT, $0-0
	ISB $15
	RET
