// Go wants this file where a function has its body in another package (see fonts.go).
