// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// tokenBytes is the length of the token in bytes.
const tokenBytes = 32

func newToken() string {
	token := make([]byte, tokenBytes)
	_, _ = rand.Read(token) // It never returns an error.
	return base64.RawURLEncoding.EncodeToString(token)
}

// access decides which requests are from the page of this server.
type access struct {
	token string
	// hosts lists the valid values of the header Host.
	hosts []string
}

func newAccess(port int) access {
	a := access{token: newToken()}
	for _, host := range []string{"127.0.0.1", "localhost", "::1"} {
		a.hosts = append(a.hosts, net.JoinHostPort(host, strconv.Itoa(port)))
	}
	if port == 80 {
		// Browsers leave out the default port.
		a.hosts = append(a.hosts, "127.0.0.1", "localhost", "[::1]")
	}
	return a
}

var (
	errHost   = errors.New("the header Host is not the loopback address and port of this server: open the URL that \"kubectl celset serve\" printed, and forward the port under the same number")
	errOrigin = errors.New("the request is from a page of another server: open the URL that \"kubectl celset serve\" printed")
	errToken  = errors.New("the token is missing or wrong: open the URL that \"kubectl celset serve\" printed")
)

// ownPage returns an error if a page of another server caused the request.
func (a *access) ownPage(request *http.Request) error {
	if !slices.Contains(a.hosts, request.Host) {
		return errHost
	}
	if origins := request.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+request.Host {
		return errOrigin
	}
	for _, site := range request.Header.Values("Sec-Fetch-Site") {
		// "none" means that the user entered the URL. Another port of the loopback interface is "same-site".
		if site != "same-origin" && site != "none" {
			return errOrigin
		}
	}
	return nil
}

// authorized returns an error unless the request has the token.
func (a *access) authorized(request *http.Request) error {
	values := request.Header.Values("Authorization")
	if len(values) != 1 {
		return errToken
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) != 1 {
		return errToken
	}
	return nil
}
