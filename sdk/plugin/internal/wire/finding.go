package wire

import (
	"fmt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// FindingTo writes a finding.
func FindingTo(f driver.Finding) *pb.Finding {
	return &pb.Finding{Code: f.Code, Severity: pb.Severity(f.Severity), Subject: f.Subject, Problem: f.Problem, Mend: f.Mend}
}

// FindingFrom reads a finding.
func FindingFrom(m *pb.Finding) (driver.Finding, error) {
	if m.Code == "" || m.Severity < pb.Severity_SEVERITY_NOTE || m.Severity > pb.Severity_SEVERITY_PROBLEM {
		return driver.Finding{}, fmt.Errorf("a finding has the code %q and the severity %d", m.Code, m.Severity)
	}
	return driver.Finding{Code: m.Code, Severity: driver.Severity(m.Severity), Subject: m.Subject, Problem: m.Problem, Mend: m.Mend}, nil
}
