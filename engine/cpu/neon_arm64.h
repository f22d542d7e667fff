// Instructions that Go's assembler does not have. Registers are numbers: D is
// set from N and M.
#define SMULL(M, N, D) WORD $(0x0e60c000 | M<<16 | N<<5 | D)   // D.4S = N.4H · M.4H
#define SMULL2(M, N, D) WORD $(0x4e60c000 | M<<16 | N<<5 | D)  // of the upper halves
#define SMLAL(M, N, D) WORD $(0x0e608000 | M<<16 | N<<5 | D)   // D.4S += N.4H · M.4H
#define SMLAL2(M, N, D) WORD $(0x4e608000 | M<<16 | N<<5 | D)  // of the upper halves
#define SXTL(N, D) WORD $(0x0f08a400 | N<<5 | D)               // D.8H = N.8B with sign
#define SXTL2(N, D) WORD $(0x4f08a400 | N<<5 | D)              // of the upper half
#define SXTL_S(N, D) WORD $(0x0f10a400 | N<<5 | D)             // D.4S = N.4H with sign
#define SXTL2_S(N, D) WORD $(0x4f10a400 | N<<5 | D)            // of the upper half
#define ADDP(M, N, D) WORD $(0x4ea0bc00 | M<<16 | N<<5 | D)    // D.4S = pairs of N, then of M, added
#define SCVTF(N, D) WORD $(0x4e21d800 | N<<5 | D)              // D.4S = float of N.4S
#define FCVTNS(N, D) WORD $(0x4e21a800 | N<<5 | D)             // D.4S = integer of N.4S, half to even
#define FCVTL(N, D) WORD $(0x0e217800 | N<<5 | D)              // D.4S = float of N.4H
#define FCVTL2(N, D) WORD $(0x4e217800 | N<<5 | D)             // of the upper half
#define FMUL(M, N, D) WORD $(0x6e20dc00 | M<<16 | N<<5 | D)    // D.4S = N · M
#define FADD(M, N, D) WORD $(0x4e20d400 | M<<16 | N<<5 | D)    // D.4S = N + M
#define FADDP(M, N, D) WORD $(0x6e20d400 | M<<16 | N<<5 | D)   // D.4S = pairs of N, then of M, added
#define FMAX(M, N, D) WORD $(0x4e20f400 | M<<16 | N<<5 | D)    // D.4S = the larger of N and M
#define FMAXV(N, D) WORD $(0x6e30f800 | N<<5 | D)              // D.S = the largest of N.4S
#define FABS(N, D) WORD $(0x4ea0f800 | N<<5 | D)               // D.4S = |N|
#define XTN(N, D) WORD $(0x0e612800 | N<<5 | D)                // D.4H = the lower halves of N.4S
#define XTN2(N, D) WORD $(0x4e612800 | N<<5 | D)               // the upper half of D
#define ADDV(N, D) WORD $(0x4eb1b800 | N<<5 | D)               // D.S = the sum of N.4S
#define FMIN(M, N, D) WORD $(0x4ea0f400 | M<<16 | N<<5 | D)    // D.4S = the smaller of N and M
#define FSUB(M, N, D) WORD $(0x4ea0d400 | M<<16 | N<<5 | D)    // D.4S = N − M
#define FDIV(M, N, D) WORD $(0x6e20fc00 | M<<16 | N<<5 | D)    // D.4S = N / M
#define FNEG(N, D) WORD $(0x6ea0f800 | N<<5 | D)               // D.4S = −N
#define FRINTN(N, D) WORD $(0x4e218800 | N<<5 | D)             // D.4S = N rounded, half to even
#define FCMGE(M, N, D) WORD $(0x6e20e400 | M<<16 | N<<5 | D)   // D.4S = all ones where N ≥ M
