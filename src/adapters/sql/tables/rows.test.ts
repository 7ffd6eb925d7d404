import assert from 'node:assert/strict'
import { it } from 'node:test'
import { projectOf } from './rows.ts'

const row = {
  ...{ id: 1, uuid: 'u', name: 'n', api_token: 'phc_a', timezone: 'UTC', anonymize_ips: 0, geoip_enabled: 1 },
  ...{
    property_matching_version: 1,
    quotas: '{}',
    created_at: 0,
    deleted: 0,
    revision: 1,
    import_undos: 0,
    erasures: 0,
  },
}

it('reads the cookieless mode of projects that were written while it was kept among the settings for clients', () => {
  const modeOf = (clientSettings: object, ingestion = {}) =>
    projectOf({
      ...row,
      client_settings: JSON.stringify(clientSettings),
      ingestion_settings: JSON.stringify({ groupTypesFrozen: false, ...ingestion }),
    }).ingestion.cookielessMode
  assert.equal(modeOf({}), 0)
  assert.equal(modeOf({ cookieless_server_hash_mode: null }), 0)
  assert.equal(modeOf({ cookieless_server_hash_mode: 2 }), 2)
  assert.equal(modeOf({ cookieless_server_hash_mode: 2 }, { cookielessMode: 0 }), 0)
})
