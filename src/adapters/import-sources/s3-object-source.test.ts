import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { ObjectSourceRefusal } from '#ports/object-source.ts'
import { envSetting } from '../../../tests/support/env-setting.ts'
import { s3ObjectSource } from './s3-object-source.ts'

it('storage that gives the same continuation token twice is not listed for ever', async t => {
  let pages = 0
  const server = createServer((_request, response) => {
    pages++
    response.end(
      `<?xml version="1.0"?><ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken><Contents><Key>${pages}.json</Key><Size>2</Size></Contents></ListBucketResult>`,
    )
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
  const keys: string[] = []
  const listed = async () => {
    for await (const { key } of source.list(new AbortController().signal)) {
      keys.push(key)
      if (keys.length > 10) return
    }
  }
  await assert.rejects(listed, (error: Error) => {
    assert.ok(error instanceof ObjectSourceRefusal)
    assert.match(error.message, /the bucket logs without an end: it gives the same continuation token twice/)
    return true
  })
  assert.deepEqual(keys, ['1.json', '2.json'])
})
