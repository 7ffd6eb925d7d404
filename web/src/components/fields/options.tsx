import { ListBox, ListBoxItem } from 'react-aria-components'
import popups from '../controls/popups.module.css'
import { Icon } from '../icon.tsx'
import { Outside } from '../text/outside.tsx'

/** One choice of a select or a combo box. */
export interface Option {
  readonly id: string
  readonly label: string
  /** A second line. */
  readonly detail?: string
  readonly isDisabled?: boolean
}

/** @param noneText is shown in place of options where there are none. */
export function OptionList({ options, noneText }: { options: readonly Option[]; noneText: string }) {
  return (
    <ListBox
      items={options}
      className={popups.options!}
      renderEmptyState={() => <div className={popups.none}>{noneText}</div>}
    >
      {option => (
        <ListBoxItem
          id={option.id}
          textValue={option.label}
          isDisabled={option.isDisabled ?? false}
          className={popups.option!}
        >
          {({ isSelected }) => (
            <>
              <span className={popups.optionText}>
                <Outside text={option.label} />
                {option.detail !== undefined && <span className={popups.detail}>{option.detail}</span>}
              </span>
              {isSelected ? <Icon name="check" /> : <span className={popups.mark} />}
            </>
          )}
        </ListBoxItem>
      )}
    </ListBox>
  )
}
