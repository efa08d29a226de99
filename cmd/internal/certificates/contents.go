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

// contents are what the Secret has. A pair is nil where the Secret has none that can be used.
type contents struct {
	current, next *pair
	bundle        bundle
}

// pair is a certificate, which has signed itself, and its key.
type pair struct {
	tls.Certificate
	certificate, key []byte
}

// read leaves out what can't be shown now, and says why.
func read(data map[string][]byte, names []string, now time.Time) (*contents, error) {
	current, err := readPair(data, certificateKey, privateKey, names, now)
	next, nextErr := readPair(data, nextCertificateKey, nextPrivateKey, names, now)
	return &contents{current: current, next: next, bundle: parse(data[bundleKey])}, errors.Join(err, nextErr)
}

// readPair returns nil without an error if there is no certificate yet.
func readPair(data map[string][]byte, certificate, key string, names []string, now time.Time) (*pair, error) {
	if len(data[certificate]) == 0 && len(data[key]) == 0 {
		return nil, nil
	}
	loaded, err := tls.X509KeyPair(data[certificate], data[key])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", certificate, err)
	}
	// API servers trust the certificate itself. They check what is checked here.
	trusted := x509.NewCertPool()
	trusted.AddCert(loaded.Leaf)
	for _, name := range names {
		if _, err := loaded.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: trusted, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
			return nil, fmt.Errorf("%s: %w", certificate, err)
		}
	}
	return &pair{loaded, data[certificate], data[key]}, nil
}

// clockSkew is how late the clock of an API server or of another replica may be.
const clockSkew = time.Hour

// newPair makes a certificate that is valid for some time from now on.
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

// trust adds both certificates to those that are trusted, and drops those that have expired. It reports whether
// one was added.
func (c *contents) trust(now time.Time) (added bool) {
	c.bundle = slices.DeleteFunc(c.bundle, func(one *x509.Certificate) bool { return now.After(one.NotAfter) })
	for _, p := range []*pair{c.current, c.next} {
		if !c.bundle.contains(p.Leaf) {
			c.bundle, added = append(c.bundle, p.Leaf), true
		}
	}
	return added
}

// write returns the data of the Secret.
func (c *contents) write() map[string][]byte {
	return map[string][]byte{
		certificateKey: c.current.certificate, privateKey: c.current.key,
		nextCertificateKey: c.next.certificate, nextPrivateKey: c.next.key,
		bundleKey: c.bundle.encoded(),
	}
}

// bundle has the certificates that API servers are to trust.
type bundle []*x509.Certificate

// parse returns none if the text is not PEM of certificates.
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
