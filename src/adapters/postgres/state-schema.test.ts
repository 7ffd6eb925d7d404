import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { addSearchPath, chooseSchema } from './state-schema.ts'

const path = 'pennon, "$user", public'
const state = ['chunk_outcome', 'log_position', 'personal_api_key', 'project', 'schema_version', 'person']

describe('the PostgreSQL schema of the state', () => {
  it('is a schema of its own, whatever another application has in `public`', () => {
    const others = { schema: 'public', tables: ['project', 'schema_version', 'users'] }
    const free = { schema: 'pennon', isMade: false, hasState: false }
    assert.deepEqual(chooseSchema(path, 'public', [others]), free)
    assert.deepEqual(chooseSchema(path, 'pennon', [{ schema: 'pennon', tables: [] }, others]), {
      ...free,
      isMade: true,
    })
    const used = { schema: 'pennon', isMade: true, hasState: true }
    assert.deepEqual(chooseSchema(path, 'pennon', [{ schema: 'pennon', tables: state }, others]), used)
  })

  it('is refused if another program has tables in it, and the error names some of them', () => {
    const found = chooseSchema('"shop"', 'shop', [{ schema: 'shop', tables: ['a', 'b', 'c', 'd', 'project'] }])
    assert.match(
      'refusal' in found ? found.refusal : '',
      /schema shop has tables of another program \(a, b, c and 2 more\)/,
    )
  })

  it('is refused if it would be empty although another schema of the search path has state', () => {
    const other = { schema: 'public', tables: state }
    for (const found of [
      chooseSchema(path, 'public', [other]),
      chooseSchema(path, 'pennon', [{ schema: 'pennon', tables: [] }, other]),
    ])
      assert.match(
        'refusal' in found ? found.refusal : '',
        /in the schema public, not in pennon.*PENNON_DATABASE_SCHEMA=public/,
      )
  })

  it('is taken from the search path in the URL, if there is one', () => {
    const url = 'postgres://u:p@h/d?options=-c%20search_path%3Dmine'
    assert.equal(addSearchPath(url, null), url)
    assert.deepEqual(chooseSchema('mine', null, []), { schema: 'mine', isMade: false, hasState: false })
    assert.deepEqual(chooseSchema('"$user", public', 'public', [{ schema: 'public', tables: [] }]), {
      ...{ schema: 'public', isMade: true, hasState: false },
    })
  })

  it('is added to the URL’s options, which otherwise stay unchanged', () => {
    const url = new URL(addSearchPath('postgres://u:p%25w@h:1/d?sslmode=require&options=-c%20jit%3Doff', 'mine'))
    assert.equal(url.searchParams.get('options'), '-c jit=off -c search_path="mine"')
    assert.equal(url.searchParams.get('sslmode'), 'require')
    assert.equal(url.password, 'p%25w')
  })
})
