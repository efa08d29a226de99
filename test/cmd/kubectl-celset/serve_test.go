// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

// asProgram is an environment variable that makes the test program run as the plugin.
const asProgram = "CELSET_TEST_AS_KUBECTL_CELSET"

func init() {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main())
	}
}

// TestServe runs "kubectl celset serve" on files in a process of its own, asks a question, and ends the process as Ctrl+C does.
func TestServe(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "serve", "-f", filepath.Join("testdata", "cluster"))
	command.Env = append(os.Environ(), asProgram+"=true", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines, url := bufio.NewReader(output), ""
	for line := ""; line != "Press Ctrl+C to stop.\n"; {
		line, err = lines.ReadString('\n')
		require.NoError(t, err, "%s", &stderr)
		if text := strings.TrimSpace(line); strings.HasPrefix(text, "http://") {
			url = text
		}
	}
	base, token, found := strings.Cut(url, "#token=")
	require.True(t, found)
	page := call(t, http.MethodGet, base, "", nil)
	require.Contains(t, string(page), "<!doctype html>")
	overview := &answers.OverviewAnswer{}
	require.NoError(t, json.Unmarshal(call(t, http.MethodPost, base+"answers/overview", token, []byte("{}")), overview))
	require.Equal(t, "testdata/cluster", filepath.ToSlash(overview.Origin))
	require.False(t, overview.Live)
	require.Len(t, overview.Nodes, 3)

	require.NoError(t, command.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, command.Wait(), "%s", &stderr)
	require.Empty(t, stderr.String())
}

// call sends a request, and returns the body of the answer, which must have the status 200.
func call(t *testing.T, method, url, token string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", content)
	return content
}
