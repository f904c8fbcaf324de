oidc "good" {
  issuer    = "https://login.example.org/realms/main"
  audiences = ["boardd"]
  grant {
    claim = "groups"
    value = "workers"
    roles = ["worker"]
  }
}
oidc "empty" {}
oidc "words" {
  issuer       = "http://login.example.org"
  audiences    = []
  keys_url     = "ftp://login.example.org/keys"
  ca_file      = "nowhere.pem"
  algorithms   = ["none", "HS256", "RS25"]
  leeway       = "1h"
  max_lifetime = "1s"
  name_claim   = ""
  tenants      = ["acme"]
  boards       = ["a/b"]
  boards_claim = "boards"
  grant {
    claim = "groups"
    roles = ["wroker"]
  }
  grant {
    roles = ["operator"]
  }
  grant {
    value = "x"
  }
}
oidc "good" {
  issuer     = "https://login.example.org/realms/main"
  audiences  = ["other", "boardd"]
  algorithms = []
  grants     = []
  tenant     = "acme"
  grant {
    roles = ["viewer"]
  }
}
oidc "queries" {
  issuer       = "https://user@login.example.org/?x=y"
  audiences    = ["boardd"]
  tenant_claim = "org"
  tenants      = ["acme", "amce"]
  grant {
    roles = ["viewer"]
  }
}
tenant "acme" {
  oidc "own" {
    issuer       = "http://127.0.0.1:8080"
    audiences    = ["boardd"]
    tenant_claim = "org"
    grant {
      claim = "groups"
      value = "root"
      roles = ["operator"]
    }
  }
}
