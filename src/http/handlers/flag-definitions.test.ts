import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CompiledProject, compileProject } from '#core/flags/evaluation/compile-project.ts'
import { hashSecret } from '#services/manage/secret-digests.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { aProject, emptyDefinitions } from '../../../tests/support/values.ts'
import { createHttpServer } from '../server.ts'
import { flagDefinitionsRoutes } from './flag-definitions.ts'

describe('the definitions of a project', () => {
  it('are encoded again if an earlier request failed to encode them', async t => {
    const compiled = compileProject(emptyDefinitions(aProject({ apiToken: 'phc_test' }), 1))
    let makeCount = 0
    let isBroken = true
    const definitions = new Proxy(compiled.definitions, {
      get: (target, name, receiver) => {
        if (name !== 'flags') return Reflect.get(target, name, receiver)
        makeCount++
        if (isBroken) throw new Error('out of memory')
        return target.flags
      },
    })
    const ask = startServer(t, { ...compiled, definitions })
    assert.deepEqual(await Promise.all([ask(), ask()]), [500, 500])
    assert.equal(await ask(), 500)
    isBroken = false
    assert.deepEqual(await Promise.all([ask(), ask()]), [200, 200])
    const madeBefore = makeCount
    assert.equal(await ask(), 200)
    assert.equal(makeCount, madeBefore, 'the successful result is cached')
  })
})

function startServer(t: { after(cleanUp: () => Promise<void>): void }, project: CompiledProject) {
  const secret = 'phs_test'
  const routes = flagDefinitionsRoutes({
    findProject: () => project,
    findBySecretHash: hash => (hash === hashSecret(secret) ? project : null),
    isOverFlagQuota: () => false,
    keyCheck: { find: () => null, forget: () => undefined },
    noteStateAway: () => undefined,
  })
  const server = createHttpServer({
    routes,
    logger: createSilentLogger(),
    metrics: createMetrics(),
    authorize: async () => false,
  })
  t.after(() => server.close())
  return async () => {
    const headers = { authorization: `Bearer ${secret}` }
    return (await server.inject({ url: '/flags/definitions?token=phc_test', headers })).statusCode
  }
}
