// The parts of the suite that reach a cluster's network and nodes, for a cluster whose gateway and pods run on this machine.
package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/grpc"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
)

// The ports where the gateway listens, by the ports of its listeners.
type ports map[string]string

func parsePorts(text string) (ports, error) {
	result := ports{}
	for pair := range strings.SplitSeq(text, ",") {
		listener, port, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("-ports: %q is not <port>=<port>", pair)
		}
		result[listener] = port
	}
	return result, nil
}

// Returns where a connection to this address of a listener goes.
func (p ports) addressOf(address, defaultPort string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = address, defaultPort
	}
	if mapped, found := p[port]; found {
		port = mapped
	}
	return net.JoinHostPort(host, port)
}

type roundTripper struct {
	ports ports
	next  roundtripper.DefaultRoundTripper
}

func newRoundTripper(ports ports, timeouts config.TimeoutConfig) roundTripper {
	return roundTripper{ports, roundtripper.DefaultRoundTripper{TimeoutConfig: timeouts}}
}

// The transports for HTTP/2 have no hook for connections, so the request gets the other address, and keeps its host.
func (r roundTripper) CaptureRoundTrip(request roundtripper.Request) (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse, error) {
	if request.Host == "" {
		request.Host = request.URL.Host
	}
	defaultPort := "80"
	if request.URL.Scheme == "https" {
		defaultPort = "443"
	}
	request.URL.Host = r.ports.addressOf(request.URL.Host, defaultPort)
	if request.Method == http.MethodHead {
		return head(request)
	}
	return r.next.CaptureRoundTrip(request)
}

// The suite's own client parses the content of a JSON response, also to HEAD, which has none.
func head(request roundtripper.Request) (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse, error) {
	sent := http.Request{Method: request.Method, URL: &request.URL, Host: request.Host, Header: request.Headers}
	response, err := http.DefaultTransport.RoundTrip(&sent)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	captured := roundtripper.CapturedResponse{StatusCode: response.StatusCode, Protocol: response.Proto, Headers: response.Header}
	return &roundtripper.CapturedRequest{Method: request.Method}, &captured, nil
}

type grpcClient struct{ ports ports }

func (c grpcClient) SendRPC(t *testing.T, address string, expected grpc.ExpectedResponse, timeout time.Duration) (*grpc.Response, error) {
	metadata := grpc.RequestMetadata{Authority: address}
	if expected.RequestMetadata != nil {
		metadata.Metadata = expected.RequestMetadata.Metadata
		if expected.RequestMetadata.Authority != "" {
			metadata.Authority = expected.RequestMetadata.Authority
		}
	}
	expected.RequestMetadata = &metadata
	client := grpc.DefaultClient{}
	defer client.Close()
	return client.SendRPC(t, c.ports.addressOf(address, "80"), expected, timeout)
}

func (grpcClient) Close() {}

type webSocketDialer struct{ ports ports }

func (d webSocketDialer) Dial(url, protocol, origin string) (*websocket.Conn, error) {
	options, err := websocket.NewConfig(url, origin)
	if err != nil {
		return nil, err
	}
	if protocol != "" {
		options.Protocol = []string{protocol}
	}
	var dialer net.Dialer
	connection, err := dialer.DialContext(context.Background(), "tcp", d.ports.addressOf(options.Location.Host, "80"))
	if err != nil {
		return nil, err
	}
	return websocket.NewClient(options, connection)
}

// Responds to requests for the logs of pods, because an API server without nodes has none.
type podLogs struct {
	folder string
	next   http.RoundTripper
}

var logPath = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/pods/([^/]+)/log$`)

func (p podLogs) RoundTrip(request *http.Request) (*http.Response, error) {
	pod := logPath.FindStringSubmatch(request.URL.Path)
	if pod == nil {
		return p.next.RoundTrip(request)
	}
	log, err := os.Open(filepath.Join(p.folder, pod[1]+".log"))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: log, Header: http.Header{}, Request: request}, nil
}
