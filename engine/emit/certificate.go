package emit

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// CertificateVariable is the environment variable of OpenTelemetry's for a file of certificates, in PEM, that a
// receiver's is checked against instead of the system's.
const CertificateVariable = "OTEL_EXPORTER_OTLP_CERTIFICATE"

// Trusting is TLS that trusts the certificates of a file; nil, which is the system's, where there is no file.
func Trusting(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", CertificateVariable, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot use %s: %s has no certificate in PEM", CertificateVariable, file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
