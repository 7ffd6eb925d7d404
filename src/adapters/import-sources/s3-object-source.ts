// Reads objects from an S3 bucket, or from other storage with the same protocol, through the AWS client. Credentials and
// region come from where that client looks for them: environment, profile, role of the machine.

import { pipeline, type Readable, Transform } from 'node:stream'
import { GetObjectCommand, ListObjectsV2Command, S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { type ObjectBytes, type ObjectSource, ObjectSourceRefusal, type SourceObject } from '#ports/object-source.ts'
import { PortError } from '#ports/port-error.ts'

export interface S3Bucket {
  readonly bucket: string
  readonly prefix: string
  /** The address of storage other than AWS; null for AWS itself. */
  readonly endpoint: string | null
  /** The bucket's region; null to take it from the environment. */
  readonly region: string | null
  /** Whether the bucket is in the URL's path instead of its host name, as most storage other than AWS requires. */
  readonly isPathStyle: boolean
}

/** Limits the size of answers other than stored objects: a page of 1,000 keys of the longest kind has 7 MiB. */
const answerBytesMax = 16 * 2 ** 20
/**
 * The most bytes of a list of objects, enough for a million objects with long keys. An endless list would fill the disk.
 */
const listBytesMax = 256 * 2 ** 20
/** The bytes that each object adds to a list in addition to its key, for its version and its size. */
const listedBytesMin = 100

const port = 'object-source'
/** The client does not retry requests: the stage of the import that calls it waits, retries and reports failures. */
const attemptsMax = 1

export function createS3ObjectSource(
  { bucket, prefix, endpoint, region, isPathStyle }: S3Bucket,
  bytesMax = { answer: answerBytesMax, list: listBytesMax },
): ObjectSource {
  const client = new S3Client({
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
    forcePathStyle: isPathStyle,
    maxAttempts: attemptsMax,
    requestHandler: { connectionTimeout: 10_000, socketTimeout: 120_000 },
    // Storage other than AWS's refuses or lacks the newer checksums. An answer to a ranged read has no checksum anyway.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  boundAnswers(client, bytesMax.answer)
  return {
    async *list(signal) {
      const asked = new Set<string>()
      let bytesLeft = bytesMax.list
      const spendListBytes = (bytes: number) => {
        bytesLeft -= bytes + listedBytesMin
        if (bytesLeft < 0) throw new ObjectSourceRefusal(describeLongList(bucket, prefix))
      }
      for (let next: string | undefined; ; ) {
        const command = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: next })
        const page = await client.send(command, { abortSignal: signal }).catch(cause => {
          throw toPortError(cause, `the bucket ${bucket}`, signal)
        })
        // Skips keys that end with a slash, which S3 consoles create to represent folders.
        for (const { Key: key, Size: bytes, ETag: version } of page.Contents ?? []) {
          if (key === undefined) continue
          spendListBytes(Buffer.byteLength(key))
          if (!key.endsWith('/')) yield { key, bytes: bytes ?? null, version: version ?? null }
        }
        next = page.NextContinuationToken
        if (next === undefined || next === '') {
          if (page.IsTruncated === true) throw new ObjectSourceRefusal(describeMissingToken(bucket))
          return
        }
        // Refuses a page whose token leads back to an earlier page: the list would never end.
        if (asked.has(next)) throw new ObjectSourceRefusal(describeRepeatedPage(bucket))
        asked.add(next)
        spendListBytes(Buffer.byteLength(next))
      }
    },
    open: (object, from, signal) => openObject(client, bucket, object, from, signal),
    close: () => client.destroy(),
  }
}

/** The client buffers every answer except an object's content in memory, however long the answer is. */
function boundAnswers({ middlewareStack }: S3Client, bytesMax: number): void {
  middlewareStack.add(
    (next, { commandName }) =>
      async args => {
        const result = await next(args)
        const response = result.response as { readonly statusCode: number; body: Readable }
        if (commandName !== 'GetObjectCommand' || response.statusCode >= 300)
          response.body = limitBody(response.body, bytesMax)
        return result
      },
    // This step runs before the client's own step that reads the answer.
    { name: 'boundAnswers', step: 'deserialize', priority: 'low' },
  )
}

function limitBody(body: Readable, bytesMax: number): Readable {
  let bytesLeft = bytesMax
  const bound = new Transform({
    transform(chunk: Buffer, _, done) {
      bytesLeft -= chunk.length
      done(bytesLeft < 0 ? new ObjectSourceRefusal(describeLongAnswer(bytesMax)) : null, chunk)
    },
  })
  // If either stream fails, the other is destroyed; whoever reads the returned stream gets the error.
  return pipeline(body, bound, () => {})
}

function describeLongAnswer(bytesMax: number): string {
  return (
    `The storage gives an answer of more than ${bytesMax.toLocaleString('en')} bytes, which no list needs. ` +
    'Check the address, or download the files by other means, and import them from their folder.'
  )
}

function describeLongList(bucket: string, prefix: string): string {
  const where = prefix === '' ? '' : ` below ${prefix}`
  return (
    `The bucket ${bucket} has more objects${where} than one import can take. Give a longer prefix, such as that of a year, ` +
    'and fetch a part of them at a time.'
  )
}

/**
 * The message for a page that announces further pages but has no token for them, and so would be mistaken for the whole
 * list. Storage that only has the first version of the list protocol answers like this.
 */
function describeMissingToken(bucket: string): string {
  return (
    `The storage lists only a part of the bucket ${bucket}: it says that there is more, and gives no continuation token ` +
    'to ask for it (it may not know ListObjectsV2). Download the files by other means, and import them from their folder.'
  )
}

function describeRepeatedPage(bucket: string): string {
  return (
    `The storage lists the bucket ${bucket} without an end: it gives the same continuation token twice. ` +
    'Download the files by other means, and import them from their folder.'
  )
}

async function openObject(
  client: S3Client,
  bucket: string,
  { key, bytes, version }: SourceObject,
  from: number,
  signal: AbortSignal,
): Promise<ObjectBytes> {
  // Sends no request if nothing is left to read, since requesting an empty range is an error.
  if (bytes !== null && bytes > 0 && from >= bytes) return { startsAt: from, bytes: yieldNoBytes() }
  const command = new GetObjectCommand({
    Bucket: bucket,
    Key: key,
    ...(version === null ? {} : { IfMatch: version }),
    ...(from === 0 ? {} : { Range: `bytes=${from}-` }),
  })
  const what = `s3://${bucket}/${key}`
  const answer = await client.send(command, { abortSignal: signal }).catch(cause => {
    throw toPortError(cause, what, signal)
  })
  // Storage that ignores `If-Match` returns the current version of the object, which may differ from the requested version.
  if (version !== null && answer.ETag !== undefined && answer.ETag !== version)
    throw new PortError(port, 'conflict', new Error(`${what} has changed`))
  const startsAt = answer.ContentRange === undefined ? 0 : from
  return { startsAt, bytes: readWholeBody(answer.Body as Readable, answer.ContentLength ?? null, what, signal) }
}

/** @throws PortError when the body ends before it has as many bytes as the answer announced. */
async function* readWholeBody(body: Readable, announced: number | null, what: string, signal: AbortSignal) {
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      yield chunk
    }
  } catch (cause) {
    throw toPortError(cause, what, signal)
  }
  if (announced !== null && bytes < announced) throw new PortError(port, 'unavailable', new Error(`${what} broke off`))
}

async function* yieldNoBytes(): AsyncIterable<Uint8Array> {}

/** Translates an error of the AWS client into the port's errors. */
function toPortError(cause: unknown, what: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (cause instanceof ObjectSourceRefusal) return cause
  const { name, message } = cause as Error
  const status = cause instanceof S3ServiceException ? cause.$metadata.httpStatusCode : undefined
  if (status === 412) return new PortError(port, 'conflict', new Error(`${what} has changed`))
  if (status === 429 || name === 'SlowDown' || (status !== undefined && status >= 500))
    return new PortError(port, 'unavailable', new Error(`the storage answers ${status} (${name})`))
  if (name === 'TimeoutError') return new PortError(port, 'timeout', cause)
  if (status === 404) return new ObjectSourceRefusal(`${what} is not there (${name}).`)
  if (status === 301 || name === 'PermanentRedirect')
    return new ObjectSourceRefusal(`${what} is in another region: give --s3-region or AWS_REGION.`)
  if (status === 401 || status === 403)
    return new ObjectSourceRefusal(`${what} may not be read with these credentials (${name}).`)
  if (name === 'CredentialsProviderError')
    return new ObjectSourceRefusal(
      'There are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.',
    )
  if (/region is missing/i.test(message)) return new ObjectSourceRefusal('Give --s3-region, or set AWS_REGION.')
  if (status !== undefined) return new ObjectSourceRefusal(`${what}: the storage answers ${status} (${name}).`)
  return new PortError(port, 'unavailable', cause)
}
