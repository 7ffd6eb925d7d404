import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNearestScope, isKnownScope } from './scopes.ts'

describe('scopes', () => {
  it('are * or an object with an action', () => {
    for (const scope of ['*', 'feature_flag:read', 'import_job:write']) assert.equal(isKnownScope(scope), true, scope)
    for (const scope of ['', 'feature_flag', 'feature_flag:', 'feature_flags:read', '*:read', 'constructor', ' *']) {
      assert.equal(isKnownScope(scope), false, scope)
    }
  })

  it('are suggested for an unknown scope, and never wider than what was requested', () => {
    for (const [scope, nearest] of [
      ['feature_flags:read', 'feature_flag:read'],
      ['feature-flag:write', 'feature_flag:write'],
      ['flags', 'feature_flag:read'],
      ['feature_flag:delete', 'feature_flag:read'],
      ['Project:Write', 'project:write'],
      ['persons:read', 'person:read'],
      ['user.read', 'user:read'],
    ] as const) {
      assert.equal(findNearestScope(scope), nearest)
    }
    assert.match(findNearestScope('x'.repeat(100_000)), /:read$/)
  })
})
