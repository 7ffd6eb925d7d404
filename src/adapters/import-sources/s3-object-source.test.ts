import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { type ObjectSource, ObjectSourceRefusal } from '#ports/object-source.ts'
import { envSetting } from '../../../tests/support/env-setting.ts'
import { s3ObjectSource } from './s3-object-source.ts'

async function aStorage(t: TestContext, pageOf: (number: number) => string): Promise<ObjectSource> {
  let pages = 0
  const server = createServer((_request, response) => {
    pages++
    const object = `<Contents><Key>${pages}.json</Key><Size>2</Size></Contents>`
    response.end(`<?xml version="1.0"?><ListBucketResult>${pageOf(pages)}${object}</ListBucketResult>`)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  envSetting(t, 'AWS_ACCESS_KEY_ID', 'key')
  envSetting(t, 'AWS_SECRET_ACCESS_KEY', 'secret')
  const source = s3ObjectSource({
    bucket: 'logs',
    prefix: '',
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    region: 'us-east-1',
    isPathStyle: true,
  })
  t.after(() => {
    source.close()
    server.closeAllConnections()
    server.close()
  })
  return source
}

/** Pushes the keys of a list into `keys`, a few at most. */
async function list(source: ObjectSource, keys: string[]): Promise<void> {
  for await (const { key } of source.list(new AbortController().signal)) {
    keys.push(key)
    if (keys.length > 10) return
  }
}

function refusalOf(words: RegExp) {
  return (error: Error) => {
    assert.ok(error instanceof ObjectSourceRefusal)
    assert.match(error.message, words)
    return true
  }
}

it('storage that gives the same continuation token twice is not listed for ever', async t => {
  const page = '<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>'
  const source = await aStorage(t, () => page)
  const keys: string[] = []
  const words = /the bucket logs without an end: it gives the same continuation token twice/
  await assert.rejects(list(source, keys), refusalOf(words))
  assert.deepEqual(keys, ['1.json', '2.json'])
})

it('a page of storage that says there is more, and gives no token to ask for it, is not taken for the whole', async t => {
  for (const end of ['', '<NextMarker>1.json</NextMarker>', '<NextContinuationToken></NextContinuationToken>']) {
    const source = await aStorage(t, () => `<IsTruncated>true</IsTruncated>${end}`)
    const words = /only a part of the bucket logs: .* no continuation token .* Download the files by other means/
    await assert.rejects(list(source, []), refusalOf(words), end)
  }
})

it('a list ends where the storage says so, with or without an empty token', async t => {
  for (const end of ['', '<NextContinuationToken></NextContinuationToken>']) {
    const more = '<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>'
    const source = await aStorage(t, number => (number === 1 ? more : `<IsTruncated>false</IsTruncated>${end}`))
    const keys: string[] = []
    await list(source, keys)
    assert.deepEqual(keys, ['1.json', '2.json'], end)
  }
})
