// Fetching from a real S3 server, directly and through connections that break. Source: docs/wire/import.md §2.1, §5
// complaint 6.

import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { fetchInto, rawFiles } from '../support/fetching.ts'
import { tempDir } from '../support/temp-dir.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { commandsOf, guideShell } from './guide-commands.ts'
import { type S3Server, s3Missing, startS3 } from './s3-server.ts'

const megabyte = 2 ** 20

describe('fetching from S3', { skip: s3Missing }, () => {
  let s3: S3Server
  let bucketCount = 0
  const environment = { ...process.env }
  const ends: (() => void | Promise<void>)[] = []
  before(async () => {
    s3 = await startS3({ after: end => void ends.unshift(end) })
    Object.assign(process.env, s3.credentials)
  })
  after(async () => {
    process.env = environment
    for (const end of ends) await end()
  })

  async function aBucket(objects: Readonly<Record<string, Buffer | string>>): Promise<string> {
    const bucket = `bucket-${++bucketCount}`
    await s3.client.send(new CreateBucketCommand({ Bucket: bucket }))
    for (const [key, body] of Object.entries(objects)) await put(bucket, key, body)
    return bucket
  }

  function put(bucket: string, key: string, body: Buffer | string) {
    return s3.client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: Buffer.from(body) }))
  }

  function configOf(url: string, endpoint = s3.endpoint) {
    return { source: 's3', s3_url: url, s3_endpoint: endpoint, s3_path_style: true }
  }

  it('every object of a prefix is fetched under its own name, across pages of the listing', async t => {
    const many = Object.fromEntries(
      Array.from({ length: 1_050 }, (_, index) => [`logs/day-${index % 7}/part ${index}.json`, `{"n":${index}}\n`]),
    )
    const bucket = await aBucket({ ...many, 'logs/empty.json': '', 'other/x.json': '{}' })
    const folder = tempDir(t)
    const { partsDone } = await fetchInto(folder, configOf(`s3://${bucket}/logs/`))
    assert.equal(partsDone, 1_051)
    assert.equal(readFileSync(join(folder, 'raw/day-3/part%2010.json'), 'utf8'), '{"n":10}\n')
    assert.equal(readFileSync(join(folder, 'raw/empty.json'), 'utf8'), '')
    assert.equal(rawFiles(folder).length, 1_051)
    assert.ok(readFetchedParts(folder)!.isComplete)
  })

  it('a broken download continues where it stopped instead of restarting', async t => {
    const large = randomBytes(40 * megabyte)
    const bucket = await aBucket({ 'large.bin': large })
    const proxy = await startCuttingProxy(t, s3.endpoint)
    for (const bytes of [9, 3, 14, 1]) proxy.cutAfter(bytes * megabyte)
    const folder = tempDir(t)
    await fetchInto(folder, configOf(`s3://${bucket}`, proxy.url))
    assert.deepEqual(readFileSync(join(folder, 'raw/large.bin')), large)
    const [part] = readFetchedParts(folder)!.parts
    assert.equal(part!.sha256, createHash('sha256').update(large).digest('hex'))
    // Bytes in transit when a connection was cut are sent twice.
    assert.ok(proxy.bytes() < 60 * megabyte, `${proxy.bytes()} bytes`)
  })

  it('an object that changes during its download is noticed, and a restart fetches the new version', async t => {
    const [first, second] = [randomBytes(30 * megabyte), randomBytes(30 * megabyte)]
    const bucket = await aBucket({ 'a.bin': first })
    const proxy = await startCuttingProxy(t, s3.endpoint)
    proxy.cutAfter(10 * megabyte, async () => void (await put(bucket, 'a.bin', second)))
    const folder = tempDir(t)
    const config = configOf(`s3://${bucket}`, proxy.url)
    await assert.rejects(
      fetchInto(folder, config),
      /s3:\/\/bucket-\d+\/a\.bin has changed since it was listed\. Start again/,
    )
    assert.deepEqual(readFetchedParts(folder)!.parts, [])
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, 'raw/a.bin')), second)
  })

  it('new objects are added, and a changed object is refused while its first version is kept', async t => {
    const bucket = await aBucket({ 'a.json': '{"a":1}\n' })
    const folder = tempDir(t)
    const config = configOf(`s3://${bucket}`)
    await fetchInto(folder, config)
    await put(bucket, 'b.json', '{"b":1}\n')
    assert.equal((await fetchInto(folder, config)).partsDone, 2)
    await put(bucket, 'a.json', '{"a":2}\n')
    await assert.rejects(fetchInto(folder, config), /a\.json has changed at the source since it was fetched/)
    assert.equal(readFileSync(join(folder, 'raw/a.json'), 'utf8'), '{"a":1}\n')
  })

  it('the command printed in the guide fetches the bucket', async t => {
    const bucket = 'acme-archive'
    await s3.client.send(new CreateBucketCommand({ Bucket: bucket }))
    await put(bucket, 'segment-logs/src/1714521600000/a.gz', 'x')
    const folder = tempDir(t)
    const { run } = guideShell(folder, s3.credentials, { s3: `--s3-endpoint ${s3.endpoint} --s3-path-style` })
    const commands = commandsOf('docs/import.md').filter(command => command.includes('s3://'))
    assert.equal(commands.length, 1)
    for (const command of commands) assert.match(await run(command), /^1 part, 1 bytes, is in/)
    assert.deepEqual(rawFiles(join(folder, 'archive')), ['src/1714521600000/a.gz'])
  })

  it('a wrong bucket or wrong credentials are named in the error, and no secret is stored', async t => {
    const bucket = await aBucket({ 'a.json': '{}' })
    await assert.rejects(fetchInto(tempDir(t), configOf('s3://no-such-bucket')), /no-such-bucket is not there/)
    const folder = tempDir(t)
    process.env.AWS_SECRET_ACCESS_KEY = 'another-secret'
    try {
      await assert.rejects(fetchInto(folder, configOf(`s3://${bucket}`)), /may not be read with these credentials/)
    } finally {
      process.env.AWS_SECRET_ACCESS_KEY = s3.credentials.AWS_SECRET_ACCESS_KEY
    }
    for (const name of readdirSync(folder).filter(file => file.startsWith('fetch.')))
      assert.doesNotMatch(readFileSync(join(folder, name), 'latin1'), /another-secret|importer/)
  })
})
