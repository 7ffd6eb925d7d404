// Fetching visits from a stand-in for Matomo's reporting API, whose list of visits shifts. Source: docs/wire/import.md
// §1.6.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { fetchInto, rawFiles, rawLines } from '../support/fetching.ts'
import { addressOf } from '../support/local-server.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Asked {
  readonly query: URLSearchParams
  readonly address: string
}

/** @param answerOf returns the whole answer to a call, or null for the visits. */
async function aMatomo(
  t: TestContext,
  visitsOf: (day: string) => readonly string[],
  answerOf: (query: URLSearchParams, callCount: number) => { status?: number; body: string } | null = () => null,
) {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const query = new URLSearchParams(await text(request))
    asked.push({ query, address: request.url! })
    const visits = visitsOf(query.get('date')!)
    const [offset, limit] = [Number(query.get('filter_offset')), Number(query.get('filter_limit'))]
    const own = answerOf(query, asked.length)
    if (own !== null) response.writeHead(own.status ?? 200).end(own.body)
    else if (query.get('method') === 'VisitsSummary.getVisits') response.end(`{"value":${visits.length}}`)
    else response.end(`[${visits.slice(offset, offset + limit).join(',\n')}]`)
  })
  const folder = tempDir(t)
  const address = `${await addressOf(t, server)}/analytics`
  const config = { source: 'matomo', host: address, site_id: '3', from: '2024-05-01', to: '2024-05-02' }
  return { asked, folder, fetch: () => fetchInto(folder, config) }
}

const visits = (day: string, count: number) =>
  Array.from({ length: count }, (_, index) => `{"idVisit":"${day}-${index}","n":9007199254740993,"latitude":1.50}`)

describe('fetching from Matomo', () => {
  it('every visit of each day is fetched unchanged, page by page', async t => {
    const counts: Record<string, number> = { '2024-05-01': 2_345, '2024-05-02': 1_000 }
    const { asked, folder, fetch } = await aMatomo(t, day => visits(day, counts[day]!))
    await fetch()
    assert.deepEqual(rawLines(folder), [...visits('2024-05-01', 2_345), ...visits('2024-05-02', 1_000)])
    assert.deepEqual(rawFiles(folder), ['matomo-3-2024-05-01.jsonl.gz', 'matomo-3-2024-05-02.jsonl.gz'])
    assert.ok(asked.every(({ query }) => query.get('token_auth') === 'matomo-token-1' && query.get('idSite') === '3'))
    assert.ok(asked.every(({ address }) => address === '/analytics/index.php'))
  })

  it('the fetch of a day restarts if visits moved from one page to another', async t => {
    let hasMoved = false
    const { folder, fetch } = await aMatomo(
      t,
      day => {
        const all = visits(day, 1_500)
        return hasMoved ? [...all.slice(1), all[0]!] : all
      },
      query => {
        // The list shifts by one visit after the first page.
        if (query.get('date') === '2024-05-01' && query.get('filter_offset') === '1000') hasMoved = true
        return null
      },
    )
    await fetch()
    const lines = rawLines(folder)
    assert.deepEqual([lines.length, new Set(lines).size], [3_000, 3_000])
  })

  it("a visit count that differs from Matomo's is reported twice, and the fetched visits are kept", async t => {
    const { folder, fetch } = await aMatomo(
      t,
      day => visits(day, 10),
      query => (query.get('method') === 'VisitsSummary.getVisits' ? { body: '{"value":12}' } : null),
    )
    const { warnings } = await fetch()
    assert.equal(warnings.length, 2)
    assert.match(warnings[0]!.line, /10 visits came, 10 of them different, and Matomo counts 12/)
    assert.equal(rawLines(folder).length, 20)
  })

  it('pages become smaller when PHP runs out of memory', async t => {
    const { folder, fetch } = await aMatomo(
      t,
      day => visits(day, 300),
      query =>
        Number(query.get('filter_limit')) > 100 ? { status: 500, body: 'Allowed memory size exhausted' } : null,
    )
    await fetch()
    assert.equal(rawLines(folder).length, 600)
  })

  it("a refusal stops the fetch with Matomo's message, without the token", async t => {
    const body = '{"result":"error","message":"You can\'t access this resource with token matomo-token-1"}'
    const { fetch } = await aMatomo(
      t,
      () => [],
      () => ({ body }),
    )
    await assert.rejects(fetch(), /Matomo says: You can't access this resource with token …\. Check the token/)
  })
})
