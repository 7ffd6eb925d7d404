import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { type ObjectSource, ObjectSourceRefusal } from '#ports/object-source.ts'
import { envSetting } from '../../../tests/support/env-setting.ts'
import { createS3ObjectSource } from './s3-object-source.ts'

async function aStorage(
  t: TestContext,
  pageOf: (number: number) => string,
  bytesMax?: Parameters<typeof createS3ObjectSource>[1],
): Promise<ObjectSource> {
  let pages = 0
  const server = createServer((_request, response) => {
    pages++
    const object = `<Contents><Key>${pages}.json</Key><Size>2</Size></Contents>`
    response.end(`<?xml version="1.0"?><ListBucketResult>${pageOf(pages)}${object}</ListBucketResult>`)
  })
  return sourceAt(t, server, bytesMax)
}

async function sourceAt(
  t: TestContext,
  server: Server,
  bytesMax?: Parameters<typeof createS3ObjectSource>[1],
): Promise<ObjectSource> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  envSetting(t, 'AWS_ACCESS_KEY_ID', 'key')
  envSetting(t, 'AWS_SECRET_ACCESS_KEY', 'secret')
  const source = createS3ObjectSource(
    {
      bucket: 'logs',
      prefix: '',
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      region: 'us-east-1',
      isPathStyle: true,
    },
    bytesMax,
  )
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

function refusalOf(message: RegExp) {
  return (error: Error) => {
    assert.ok(error instanceof ObjectSourceRefusal)
    assert.match(error.message, message)
    return true
  }
}

it('a list ends with an error if the storage repeats a continuation token', async t => {
  const page = '<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>'
  const source = await aStorage(t, () => page)
  const keys: string[] = []
  const message = /the bucket logs without an end: it gives the same continuation token twice/
  await assert.rejects(list(source, keys), refusalOf(message))
  assert.deepEqual(keys, ['1.json', '2.json'])
})

it('a page that announces more pages but has no token is an error, not the end of the list', async t => {
  for (const end of ['', '<NextMarker>1.json</NextMarker>', '<NextContinuationToken></NextContinuationToken>']) {
    const source = await aStorage(t, () => `<IsTruncated>true</IsTruncated>${end}`)
    const message = /only a part of the bucket logs: .* no continuation token .* Download the files by other means/
    await assert.rejects(list(source, []), refusalOf(message), end)
  }
})

it('a list ends at the last page, with or without an empty token', async t => {
  for (const end of ['', '<NextContinuationToken></NextContinuationToken>']) {
    const more = '<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>'
    const source = await aStorage(t, number => (number === 1 ? more : `<IsTruncated>false</IsTruncated>${end}`))
    const keys: string[] = []
    await list(source, keys)
    assert.deepEqual(keys, ['1.json', '2.json'], end)
  }
})

it('a list is bounded in bytes, in pages of objects and in empty pages', async t => {
  const folder = '<Contents><Key>folder/</Key></Contents>'
  for (const content of ['', folder.repeat(100)]) {
    const more = (number: number) =>
      `<IsTruncated>true</IsTruncated><NextContinuationToken>${number}</NextContinuationToken>`
    const source = await aStorage(t, number => content + more(number), { answer: 2 ** 20, list: 10_000 })
    const all = Array.fromAsync(source.list(new AbortController().signal))
    await assert.rejects(all, refusalOf(/bucket logs has more objects than one import can take. Give a longer prefix/))
  }
})

it('an endless response of the storage is aborted, whether it is a list or an error', async t => {
  let sent = 0
  const server = createServer((request, response) => {
    response.statusCode = request.url!.includes('list-type') ? 200 : 404
    const write = () => {
      while (!response.destroyed && response.write(' '.repeat(65_536))) sent += 65_536
    }
    response.write('<?xml version="1.0"?>')
    response.on('drain', write)
    write()
  })
  const source = await sourceAt(t, server)
  const { signal } = new AbortController()
  const message = /an answer of more than 16,777,216 bytes, which no list needs/
  await assert.rejects(list(source, []), refusalOf(message))
  await assert.rejects(source.open({ key: 'a', bytes: null, version: null }, 0, signal), refusalOf(message))
  assert.ok(sent < 100 * 2 ** 20, `${sent} bytes`)
})
