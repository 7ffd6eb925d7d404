import { Button } from '../../components/controls/button.tsx'
import { TextField } from '../../components/fields/text-field.tsx'
import { CopyButton } from '../../components/overlays/copy-button.tsx'
import { Dialog } from '../../components/overlays/dialog.tsx'
import { Time } from '../../components/text/time.tsx'

export interface NewLink {
  readonly link: string
  readonly expiresAt: string
  /** Whom it lets in. */
  readonly for: string
}

/** A link that is shown this once. */
export function LinkDialog({ link, onClose }: { link: NewLink | null; onClose: () => void }) {
  return (
    <Dialog
      title={`Link for ${link?.for ?? ''}`}
      isOpen={link !== null}
      onClose={onClose}
      isKept
      actions={
        <>
          <CopyButton text={link?.link ?? ''} label="Copy the link" hasWords />
          <Button kind="filled" onPress={onClose}>
            Done
          </Button>
        </>
      }
    >
      {link && (
        <TextField
          label="Link"
          value={link.link}
          onChange={() => undefined}
          isReadOnly
          isCode
          help={
            <>
              Pass it on yourself: Pennon sends no mail. It works once, until <Time at={link.expiresAt} form="zoned" />,
              and is not shown again.
            </>
          }
        />
      )}
    </Dialog>
  )
}
