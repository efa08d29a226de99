// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	// sentOn marks requests that another replica has sent on. They are not sent on again.
	sentOn = "X-Celset-Sent-On"
	// maxReview is how large a request and an answer may be.
	maxReview = 7 << 20
	// sendTime is how long another replica may take.
	sendTime = 10 * time.Second
)

// Certificates are files of PEM.
type Certificates struct {
	// Certificate is what all replicas show. Authority is what has signed it; it need not exist if the certificate
	// has signed itself.
	Certificate, Authority string
}

// sender sends requests on to another replica.
type sender struct{ client *http.Client }

func newSender(certificates Certificates) *sender {
	return &sender{&http.Client{Timeout: sendTime, Transport: &http.Transport{
		MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			config, err := certificates.config()
			if err != nil {
				return nil, err
			}
			return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
		},
	}}}
}

// config trusts what shows the certificate, or one for the same name that the authority has signed.
func (c Certificates) config() (*tls.Config, error) {
	shown, err := os.ReadFile(c.Certificate)
	if err != nil {
		return nil, fmt.Errorf("certificate of the replicas: %w", err)
	}
	pair, err := firstOf(shown)
	if err != nil {
		return nil, fmt.Errorf("certificate of the replicas %s: %w", c.Certificate, err)
	}
	if len(pair.DNSNames) == 0 {
		return nil, fmt.Errorf("certificate of the replicas %s: it is for no name of a host", c.Certificate)
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair)
	if authority, err := os.ReadFile(c.Authority); err == nil {
		roots.AppendCertsFromPEM(authority)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: pair.DNSNames[0], NextProtos: []string{"http/1.1"}}, nil
}

func firstOf(content []byte) (*x509.Certificate, error) {
	all, err := certutil.ParseCertsPEM(content)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// send sends a request on and answers with what comes back. With an error nothing was answered, and the body can be
// read again.
func (s *sender) send(w http.ResponseWriter, r *http.Request, address string) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxReview+1))
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil || len(body) > maxReview {
		return errors.Join(err, errors.New("the request can't be read, or is too large"))
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, "https://"+address+Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	on.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	on.Header.Set(sentOn, "1")
	response, err := s.client.Do(on)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReview))
	if err != nil {
		return err
	}
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(answer)
	return nil
}
