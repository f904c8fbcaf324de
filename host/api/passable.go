package api

import (
	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// passable are the calls that another server may have to make, with one answer: all those of
// BoardService that are about a board, and those of administrators that say what was seen of
// one where it is open. What is kept in the catalog every server changes. A test holds them
// against the schema.
var passable = map[string]func(connect.HTTPClient, string, ...connect.ClientOption) passer{
	boarddv1connect.BoardServicePostJobsProcedure:        passerOf[boarddv1.PostJobsRequest, boarddv1.PostJobsResponse](),
	boarddv1connect.BoardServiceGetJobsProcedure:         passerOf[boarddv1.GetJobsRequest, boarddv1.GetJobsResponse](),
	boarddv1connect.BoardServiceListJobsProcedure:        passerOf[boarddv1.ListJobsRequest, boarddv1.ListJobsResponse](),
	boarddv1connect.BoardServiceCountJobsProcedure:       passerOf[boarddv1.CountJobsRequest, boarddv1.CountJobsResponse](),
	boarddv1connect.BoardServiceClaimJobsProcedure:       passerOf[boarddv1.ClaimJobsRequest, boarddv1.ClaimJobsResponse](),
	boarddv1connect.BoardServiceWorkProcedure:            passerOf[boarddv1.WorkRequest, boarddv1.WorkResponse](),
	boarddv1connect.BoardServiceExtendClaimsProcedure:    passerOf[boarddv1.ExtendClaimsRequest, boarddv1.ExtendClaimsResponse](),
	boarddv1connect.BoardServiceConsumeJobsProcedure:     passerOf[boarddv1.ConsumeJobsRequest, boarddv1.ConsumeJobsResponse](),
	boarddv1connect.BoardServiceAbandonJobsProcedure:     passerOf[boarddv1.AbandonJobsRequest, boarddv1.AbandonJobsResponse](),
	boarddv1connect.BoardServiceTrashJobsProcedure:       passerOf[boarddv1.TrashJobsRequest, boarddv1.TrashJobsResponse](),
	boarddv1connect.BoardServiceRestoreJobsProcedure:     passerOf[boarddv1.RestoreJobsRequest, boarddv1.RestoreJobsResponse](),
	boarddv1connect.BoardServicePurgeJobsProcedure:       passerOf[boarddv1.PurgeJobsRequest, boarddv1.PurgeJobsResponse](),
	boarddv1connect.BoardServiceReleaseJobsProcedure:     passerOf[boarddv1.ReleaseJobsRequest, boarddv1.ReleaseJobsResponse](),
	boarddv1connect.BoardServicePostAsItWasProcedure:     passerOf[boarddv1.PostAsItWasRequest, boarddv1.PostAsItWasResponse](),
	boarddv1connect.BoardServiceListEventsProcedure:      passerOf[boarddv1.ListEventsRequest, boarddv1.ListEventsResponse](),
	boarddv1connect.BoardServiceExplainJobProcedure:      passerOf[boarddv1.ExplainJobRequest, boarddv1.ExplainJobResponse](),
	boarddv1connect.BoardServiceStartOperationProcedure:  passerOf[boarddv1.StartOperationRequest, boarddv1.StartOperationResponse](),
	boarddv1connect.BoardServiceFinishOperationProcedure: passerOf[boarddv1.FinishOperationRequest, boarddv1.FinishOperationResponse](),
	boarddv1connect.BoardServiceMarkOperationsProcedure:  passerOf[boarddv1.MarkOperationsRequest, boarddv1.MarkOperationsResponse](),
	boarddv1connect.BoardServiceAppendLogProcedure:       passerOf[boarddv1.AppendLogRequest, boarddv1.AppendLogResponse](),
	boarddv1connect.BoardServiceReadLogProcedure:         passerOf[boarddv1.ReadLogRequest, boarddv1.ReadLogResponse](),
	boarddv1connect.BoardServiceCancelJobsProcedure:      passerOf[boarddv1.CancelJobsRequest, boarddv1.CancelJobsResponse](),
	boarddv1connect.BoardServiceChangePriorityProcedure:  passerOf[boarddv1.ChangePriorityRequest, boarddv1.ChangePriorityResponse](),
	boarddv1connect.BoardServiceArchiveJobsProcedure:     passerOf[boarddv1.ArchiveJobsRequest, boarddv1.ArchiveJobsResponse](),
	boarddv1connect.BoardServicePutBookProcedure:         passerOf[boarddv1.PutBookRequest, boarddv1.PutBookResponse](),
	boarddv1connect.BoardServiceGetBookProcedure:         passerOf[boarddv1.GetBookRequest, boarddv1.GetBookResponse](),
	boarddv1connect.BoardServicePutScheduleProcedure:     passerOf[boarddv1.PutScheduleRequest, boarddv1.PutScheduleResponse](),
	boarddv1connect.BoardServiceListSchedulesProcedure:   passerOf[boarddv1.ListSchedulesRequest, boarddv1.ListSchedulesResponse](),
	boarddv1connect.BoardServiceGetScheduleProcedure:     passerOf[boarddv1.GetScheduleRequest, boarddv1.GetScheduleResponse](),
	boarddv1connect.BoardServiceDeleteScheduleProcedure:  passerOf[boarddv1.DeleteScheduleRequest, boarddv1.DeleteScheduleResponse](),
	boarddv1connect.BoardServicePauseScheduleProcedure:   passerOf[boarddv1.PauseScheduleRequest, boarddv1.PauseScheduleResponse](),
	boarddv1connect.BoardServiceResumeScheduleProcedure:  passerOf[boarddv1.ResumeScheduleRequest, boarddv1.ResumeScheduleResponse](),
	boarddv1connect.BoardServiceTriggerScheduleProcedure: passerOf[boarddv1.TriggerScheduleRequest, boarddv1.TriggerScheduleResponse](),
	boarddv1connect.BoardServicePutBatchProcedure:        passerOf[boarddv1.PutBatchRequest, boarddv1.PutBatchResponse](),
	boarddv1connect.BoardServiceGetBatchProcedure:        passerOf[boarddv1.GetBatchRequest, boarddv1.GetBatchResponse](),
	boarddv1connect.BoardServiceCloseBatchProcedure:      passerOf[boarddv1.CloseBatchRequest, boarddv1.CloseBatchResponse](),
	boarddv1connect.BoardServiceListBatchesProcedure:     passerOf[boarddv1.ListBatchesRequest, boarddv1.ListBatchesResponse](),
	boarddv1connect.BoardServiceRegisterEntityProcedure:  passerOf[boarddv1.RegisterEntityRequest, boarddv1.RegisterEntityResponse](),
	boarddv1connect.BoardServiceRemoveEntityProcedure:    passerOf[boarddv1.RemoveEntityRequest, boarddv1.RemoveEntityResponse](),
	boarddv1connect.BoardServiceListEntitiesProcedure:    passerOf[boarddv1.ListEntitiesRequest, boarddv1.ListEntitiesResponse](),
	boarddv1connect.BoardServiceGetBoardProcedure:        passerOf[boarddv1.GetBoardRequest, boarddv1.GetBoardResponse](),
	boarddv1connect.BoardServicePauseBoardProcedure:      passerOf[boarddv1.PauseBoardRequest, boarddv1.PauseBoardResponse](),
	boarddv1connect.BoardServiceResumeBoardProcedure:     passerOf[boarddv1.ResumeBoardRequest, boarddv1.ResumeBoardResponse](),
	boarddv1connect.BoardServiceAcknowledgeLossProcedure: passerOf[boarddv1.AcknowledgeLossRequest, boarddv1.AcknowledgeLossResponse](),

	boarddv1connect.AdminServiceSimulatePolicyProcedure: passerOf[boarddv1.SimulatePolicyRequest, boarddv1.SimulatePolicyResponse](),
	boarddv1connect.AdminServiceShadowPolicyProcedure:   passerOf[boarddv1.ShadowPolicyRequest, boarddv1.ShadowPolicyResponse](),
}
