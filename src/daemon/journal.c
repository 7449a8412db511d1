/*
 * cloister-journal: appends the records of one core to the log of the node and seals them.
 *
 *   fd 3: packets from and to core     fd 4: directory of the log     fd 5: directory of the key
 *   fd 6: a page of memory in which it says where the log ends (journal_page.h)
 *
 * Its rights (rights_journal.c), dropped once the key is read: files below fd 4 and nothing else;
 * no network, no program, no process. Core cannot reach these directories, so a core that was taken
 * over can add records, but not rewrite or sign the past.
 */
#include "daemon/journal_role.h"

int main(int argc, char **argv)
{
	journal_role(argc, argv);
}
