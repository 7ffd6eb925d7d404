// One capture request per SDK and range of versions, as they send it: path, query, content type, encoding and shape of
// the body. Source: docs/wire/clients.md 3, row by row; docs/wire/ingestion.md 1–3 for the stored events.

import { browserSdks, liteSdks } from './browser-sdks.ts'
import { gzippingSdks, mobileSdks } from './device-sdks.ts'
import { directCalls } from './direct-calls.ts'
import { nodeAndPythonSdks } from './node-and-python-sdks.ts'
import type { SdkRequest } from './sdk-request.ts'
import { serverSdks } from './server-sdks.ts'

/** @param token the project API key, which each body has where the SDK puts it. */
export function sdkRequests(token: string): SdkRequest[] {
  return [
    ...nodeAndPythonSdks(token),
    ...serverSdks(token),
    ...gzippingSdks(token),
    ...mobileSdks(token),
    ...browserSdks(token),
    ...liteSdks(token),
    ...directCalls(token),
  ]
}
