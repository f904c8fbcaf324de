package tenant

// permissions is the one table of who may call what. A call that has no line here is
// refused to everybody.
var permissions = map[string][]Role{
	"WhoAmI":       Roles(),
	"GetJobs":      readers,
	"ListJobs":     readers,
	"CountJobs":    readers,
	"WatchBoard":   readers,
	"ListEvents":   readers,
	"ExplainJob":   readers,
	"ListEntities": readers,
	"GetLog":       readers,
	"ReadLog":      readers,
	"GetBook":      readers,
	"ListBoards":   readers,
	"GetBoard":     readers,

	"PostJobs":       {Poster, TenantAdmin, Operator},
	"CancelJobs":     {Poster, TenantAdmin, Operator},
	"ChangePriority": {Poster, TenantAdmin, Operator},
	"PutBook":        {Poster, TenantAdmin, Operator},

	"ListSchedules":   readers,
	"GetSchedule":     readers,
	"PutSchedule":     {Poster, TenantAdmin, Operator},
	"DeleteSchedule":  {Poster, TenantAdmin, Operator},
	"PauseSchedule":   {Poster, TenantAdmin, Operator},
	"ResumeSchedule":  {Poster, TenantAdmin, Operator},
	"TriggerSchedule": {Poster, TenantAdmin, Operator},

	"ListBatches": readers,
	"GetBatch":    readers,
	"PutBatch":    {Poster, TenantAdmin, Operator},
	"CloseBatch":  {Poster, TenantAdmin, Operator},

	"ClaimJobs":      {Worker, TenantAdmin, Operator},
	"Work":           {Worker, TenantAdmin, Operator},
	"ExtendClaims":   {Worker, TenantAdmin, Operator},
	"ConsumeJobs":    {Worker, TenantAdmin, Operator},
	"AbandonJobs":    {Worker, TenantAdmin, Operator},
	"TrashJobs":      {Worker, TenantAdmin, Operator},
	"RegisterEntity": {Worker, TenantAdmin, Operator},
	"RemoveEntity":   {Worker, TenantAdmin, Operator},

	"StartOperation":  {Worker, TenantAdmin, Operator},
	"FinishOperation": {Worker, TenantAdmin, Operator},
	"MarkOperations":  {Worker, TenantAdmin, Operator},
	"AppendLog":       {Worker, TenantAdmin, Operator},

	"RestoreJobs": {TenantAdmin, Operator},
	"PurgeJobs":   {TenantAdmin, Operator},
	"ArchiveJobs": {TenantAdmin, Operator},
	"ReleaseJobs": {TenantAdmin, Operator},
	"PostAsItWas": {TenantAdmin, Operator},
	"PauseBoard":  {TenantAdmin, Operator},
	"ResumeBoard": {TenantAdmin, Operator},

	"AcknowledgeLoss": {TenantAdmin, Operator},

	MetricsCall: {Metrics, Operator},
	ProfileCall: {Operator},

	// AdminService. All of them but the operators' are about the caller's own
	// tenant, and about any tenant for an operator: see Principal.CheckAdmin.
	"CreateTenant": operators,
	"UpdateTenant": operators,
	"DeleteTenant": operators,
	"ListTenants":  admins,
	"ReloadConfig": operators,
	"ListPlaces":   operators,
	"ReleasePlace": operators,
	"ListServers":  operators,
	"DrainServer":  operators,

	"BackupBackend": operators,

	"GetCatalog":    operators,
	"AcceptCatalog": operators,
	"ExportCatalog": operators,
	"ImportCatalog": operators,

	"CreateToken": admins,
	"ListTokens":  admins,
	"RevokeToken": admins,

	"CreateBoard":      admins,
	"UpdateBoard":      admins,
	"DeleteBoard":      admins,
	"ListTenantBoards": admins,
	"ExportBoard":      admins,
	"ImportBoard":      admins,
	"MoveBoard":        admins,
	"GetMove":          admins,
	"AbandonMove":      admins,
	"ListBackends":     admins,
	"GetAudit":         admins,

	"PutWebhook":    admins,
	"GetWebhook":    admins,
	"ListWebhooks":  admins,
	"DeleteWebhook": admins,
	"PauseWebhook":  admins,
	"ResumeWebhook": admins,
	"TestWebhook":   admins,

	"PutPolicy":      authors,
	"ListPolicies":   authors,
	"DeletePolicy":   authors,
	"SimulatePolicy": authors,
	"ShadowPolicy":   authors,
	"PromotePolicy":  authors,
	"RollbackPolicy": authors,
}
