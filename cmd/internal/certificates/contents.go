// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// contents is the decoded data of the Secret. current or next is nil if the Secret has no usable certificate there.
type contents struct {
	current, next *pair
	bundle        bundle
}

// pair is a self-signed certificate and its key.
type pair struct {
	tls.Certificate
	certificate, key []byte
}

// read decodes the data of the Secret. It ignores certificates that can't be used, and describes them in the error.
func read(data map[string][]byte, names []string, now time.Time) (*contents, error) {
	current, err := readPair(data, certificateKey, privateKey, names, now)
	next, nextErr := readPair(data, nextCertificateKey, nextPrivateKey, names, now)
	return &contents{current: current, next: next, bundle: parse(data[bundleKey])}, errors.Join(err, nextErr)
}

// readPair returns the certificate and key under two names of the Secret. It returns nil without an error if both are missing.
func readPair(data map[string][]byte, certificate, key string, names []string, now time.Time) (*pair, error) {
	if len(data[certificate]) == 0 && len(data[key]) == 0 {
		return nil, nil
	}
	loaded, err := tls.X509KeyPair(data[certificate], data[key])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certificate, err)
	}
	// API servers trust this certificate itself instead of a CA. So it must pass the same checks here.
	trusted := x509.NewCertPool()
	trusted.AddCert(loaded.Leaf)
	for _, name := range names {
		if _, err := loaded.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			return nil, fmt.Errorf("%s: %w", certificate, err)
		}
	}
	return &pair{loaded, data[certificate], data[key]}, nil
}

// clockSkew is how far the clock of an API server or another replica may be behind. Certificates are valid from this long
// before their creation.
const clockSkew = time.Hour

// newPair creates a self-signed certificate that expires after the lifetime.
func newPair(names []string, now time.Time, lifetime time.Duration) (*pair, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, err
	}
	certificate := bundle{{Raw: made}}.encoded()
	loaded, err := tls.X509KeyPair(certificate, key)
	return &pair{loaded, certificate, key}, err
}

// trust adds the current and the next certificate to the bundle, and removes expired certificates. It reports whether it added
// a certificate.
func (c *contents) trust(now time.Time) (added bool) {
	c.bundle = slices.DeleteFunc(c.bundle, func(one *x509.Certificate) bool { return now.After(one.NotAfter) })
	for _, p := range []*pair{c.current, c.next} {
		if !c.bundle.contains(p.Leaf) {
			c.bundle, added = append(c.bundle, p.Leaf), true
		}
	}
	return added
}

// write returns the contents in the form of the Secret's data.
func (c *contents) write() map[string][]byte {
	return map[string][]byte{
		certificateKey: c.current.certificate, privateKey: c.current.key,
		nextCertificateKey: c.next.certificate, nextPrivateKey: c.next.key,
		bundleKey: c.bundle.encoded(),
	}
}

// bundle is the list of certificates that API servers should trust.
type bundle []*x509.Certificate

// parse returns nil if the text is not a PEM list of certificates.
func parse(text []byte) bundle {
	parsed, err := certutil.ParseCertsPEM(text)
	if err != nil {
		return nil
	}
	return parsed
}

func (b bundle) contains(others ...*x509.Certificate) bool {
	return !slices.ContainsFunc(others, func(other *x509.Certificate) bool { return !slices.ContainsFunc(b, other.Equal) })
}

func (b bundle) encoded() []byte {
	var encoded []byte
	for _, one := range b {
		encoded = append(encoded, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: one.Raw})...)
	}
	return encoded
}
