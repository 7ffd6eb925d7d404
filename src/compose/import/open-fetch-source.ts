// Opens the source of a fetch from its configuration and the environment.

import { howToInstall, missingPackage, packageFolder } from '#distribution.ts'
import { createApiSource } from '#importer/fetch/apis/api-sources.ts'
import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { FetchStop } from '#importer/fetch/fetch-faults.ts'
import { type FetchEnvironment, findSecret } from '#importer/fetch/fetch-secrets.ts'
import type { FetchSource } from '#importer/fetch/fetch-source.ts'
import { createHttpListSource } from '#importer/fetch/http-list.ts'
import { createObjectFetchSource } from '#importer/fetch/object-parts.ts'

/** The S3 client requires a region; storage outside AWS ignores it. */
const anyRegion = 'us-east-1'

/**
 * @param isPlan true if only the list of the fetch's parts is needed; the API's secrets may then be missing.
 * @throws ImportConfigError, FetchStop
 */
export async function openFetchSource(
  config: FetchConfig,
  env: FetchEnvironment,
  nowMs: number,
  isPlan = false,
): Promise<FetchSource> {
  if (config.source === 's3') {
    const region = config.s3_region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION ?? null
    const { bucket, prefix } = config.s3_url!
    const endpoint = config.s3_endpoint
    const place = {
      ...{ bucket, prefix, endpoint },
      region: region ?? (endpoint === null ? null : anyRegion),
      isPathStyle: config.s3_path_style,
    }
    if (packageFolder('@aws-sdk/client-s3') === null)
      throw new FetchStop(
        `${missingPackage('@aws-sdk/client-s3')}. To fetch from S3, ${howToInstall('@aws-sdk/client-s3')}, then run this command again.`,
      )
    // Loaded only when it is used: loading the AWS client takes a sixth of a command's start time.
    const { createS3ObjectSource: s3ObjectSource } = await import('#adapters/import-sources/s3-object-source.ts')
    return createObjectFetchSource(s3ObjectSource(place), { prefix })
  }
  if (config.source === 'http') {
    const authorization = findSecret(env, 'IMPORT_HTTP_AUTHORIZATION')
    return createObjectFetchSource(createHttpListSource(config.list!, authorization), {
      isWritten: true,
    })
  }
  return createApiSource(config, env, nowMs, isPlan)
}
